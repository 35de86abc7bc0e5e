"""What tests share: small environments, settings and runs, and stand-ins for what is slow."""
