"""The paper: networks, both levels, landmarks, planning, and the learner that runs them in order."""
