"""TD3 (Fujimoto et al., 2018), used by both levels: state, losses, one update.

A level reduces its transitions to a `Batch`; the policy's input is one vector (state and goal, concatenated), so
nothing here knows about levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax

from higl.algo.forward import MLP, Affine, Array, actor_action, affine, mlp
from higl.algo.nets import descend, init_mlp
from higl.settings.config import LevelConfig

Info = dict[str, jax.Array]

# The paper's numbers for both levels (appendix, table 1). About the decay it is silent: our choice.
CRITIC_LEARNING_RATE = 1e-3
CRITIC_WEIGHT_DECAY = 1e-4
SOFT_UPDATE = 0.005
"""Share of the new weights in each update of the target networks, tau."""


class Networks(NamedTuple):
    """The actor and the twin critics."""

    actor: MLP
    critics: tuple[MLP, MLP]


class RewardRange(NamedTuple):
    """The smallest and the largest reward learned from so far, and 0, which is what follows the end of an episode."""

    low: Array
    high: Array


class TD3State(NamedTuple):
    """All that TD3 learns, and the range of the rewards it learned from."""

    networks: Networks
    targets: Networks
    actor_optimiser: Any
    critic_optimiser: Any
    rewards: RewardRange


class Batch(NamedTuple):
    """Transitions: input [B, S], action [B, A], reward [B], next_input [B, S], discount [B] (0 at the end)."""

    input: jax.Array
    action: jax.Array
    reward: jax.Array
    next_input: jax.Array
    discount: jax.Array


class Smoothing(NamedTuple):
    """Noise on the target policy's action, in the units of that action: its standard deviation and its bound."""

    sigma: float
    limit: float


@dataclass(frozen=True)
class TD3:
    """The fixed part of a TD3 learner: its settings, the sizes of its layers, and the largest action of its actor [A].

    `affine` is how its networks multiply. If `bounded`, targets stay within the values that rewards allow.
    """

    config: LevelConfig
    smoothing: Smoothing
    hidden: tuple[int, ...]
    input_size: int
    action_scale: tuple[float, ...]
    affine: Affine = affine
    bounded: bool = False

    @property
    def actor_optimiser(self) -> optax.GradientTransformation:
        """Return the actor's optimiser."""
        return optax.adam(self.config.actor_learning_rate)

    @property
    def critic_optimiser(self) -> optax.GradientTransformation:
        """Return the critics' optimiser: Adam with L2 decay added to the gradient."""
        return optax.chain(
            optax.add_decayed_weights(CRITIC_WEIGHT_DECAY),
            optax.adam(CRITIC_LEARNING_RATE),
        )


def init(td3: TD3, key: jax.Array) -> TD3State:
    """Draw the networks; the targets start equal to them."""
    actor_key, first_key, second_key = jax.random.split(key, 3)
    size, hidden = len(td3.action_scale), td3.hidden
    critic_sizes = (td3.input_size + size, *hidden, 1)
    networks = Networks(
        init_mlp(actor_key, (td3.input_size, *hidden, size)),
        (init_mlp(first_key, critic_sizes), init_mlp(second_key, critic_sizes)),
    )
    return TD3State(
        networks,
        jax.tree.map(jnp.copy, networks),
        td3.actor_optimiser.init(networks.actor),
        td3.critic_optimiser.init(networks.critics),
        RewardRange(jnp.zeros(()), jnp.zeros(())),
    )


def critic_value(td3: TD3, critic: MLP, x: Array, action: Array) -> Array:
    """Return a critic's value of an action: [..., S], [..., A] -> [...]. NumPy or JAX."""
    both = x.__array_namespace__().concatenate([x, action], axis=-1)
    return mlp(critic, both, affine=td3.affine)[..., 0]


def critic_values(td3: TD3, critics: tuple[MLP, MLP], x: Array, action: Array) -> tuple[Array, Array]:
    """Return both critics' values of an action: [..., S], [..., A] -> two of [...]. NumPy or JAX."""
    first, second = (critic_value(td3, critic, x, action) for critic in critics)
    return first, second


def policy_value(td3: TD3, networks: Networks, x: Array) -> Array:
    """Return V: the smaller critic's value at the actor's own action, [..., S] -> [...]. NumPy or JAX."""
    xp = x.__array_namespace__()
    action = actor_action(networks.actor, xp.asarray(td3.action_scale, dtype=x.dtype), x, td3.affine)
    return xp.minimum(*critic_values(td3, networks.critics, x, action))


# Steps that count at the most, so that rewards without a discount bound values too.
_LONGEST = 1e6


def possible_values(discount: float, rewards: RewardRange) -> tuple[Array, Array]:
    """Return the smallest and the largest discounted return of rewards in a range: [], []. NumPy or JAX."""
    steps = 1.0 / max(1.0 - discount, 1.0 / _LONGEST)
    return rewards.low * steps, rewards.high * steps


def wider_range(rewards: RewardRange, reward: jax.Array) -> RewardRange:
    """Return a range that has been extended to further rewards [B]."""
    return RewardRange(jnp.minimum(rewards.low, reward.min()), jnp.maximum(rewards.high, reward.max()))


def td_target(td3: TD3, targets: Networks, rewards: RewardRange, batch: Batch, key: jax.Array) -> jax.Array:
    """Return the TD target [B]: clipped double Q at the target policy's action, smoothed by clipped noise.

    If `bounded`, the next state's value counts as no lower and no higher than the rewards of the range allow. Where
    nothing trains a value, as in the last state before a time limit, it could grow without end otherwise.
    """
    scale, limit = jnp.asarray(td3.action_scale), td3.smoothing.limit
    noise = jax.random.normal(key, batch.action.shape) * td3.smoothing.sigma
    action = actor_action(targets.actor, scale, batch.next_input, td3.affine) + jnp.clip(noise, -limit, limit)
    action = jnp.clip(action, -scale, scale)
    value = jnp.minimum(*critic_values(td3, targets.critics, batch.next_input, action))
    if td3.bounded:
        value = jnp.clip(value, *possible_values(td3.config.discount, rewards))
    return batch.reward + batch.discount * value


def critic_loss(td3: TD3, critics: tuple[MLP, MLP], batch: Batch, target: jax.Array) -> tuple[jax.Array, Info]:
    """Return the Huber loss of both critics against a target [B]."""
    first, second = critic_values(td3, critics, batch.input, batch.action)
    loss = jnp.mean(optax.losses.huber_loss(first, target) + optax.losses.huber_loss(second, target))
    return loss, {"critic_loss": loss, "target": jnp.mean(target)}


# A further loss on the actor's action, [B, A] -> (scalar, info): the landmark loss of the high level.
ActionLoss = Callable[[jax.Array], tuple[jax.Array, Info]]


def actor_loss(
    td3: TD3, actor: MLP, critics: tuple[MLP, MLP], x: jax.Array, action_loss: ActionLoss | None
) -> tuple[jax.Array, Info]:
    """Return minus the first critic's value of the actor's action, plus a further loss on that action.

    For the high level this is eq. 9, with `action_loss` = `high.landmark_loss`.
    """
    action = actor_action(actor, jnp.asarray(td3.action_scale), x, td3.affine)
    loss = -jnp.mean(critic_value(td3, critics[0], x, action))
    info = {"actor_loss": loss}
    if action_loss is not None:
        further, further_info = action_loss(action)
        loss, info = loss + further, info | further_info
    return loss, info


def update_critics(td3: TD3, state: TD3State, batch: Batch, key: jax.Array) -> tuple[TD3State, Info]:
    """Update the critics alone."""
    rewards = wider_range(state.rewards, batch.reward)
    target = td_target(td3, state.targets, rewards, batch, key)
    grads, info = jax.grad(lambda c: critic_loss(td3, c, batch, target), has_aux=True)(state.networks.critics)
    critics, optimiser = descend(td3.critic_optimiser, state.networks.critics, grads, state.critic_optimiser)
    networks = state.networks._replace(critics=critics)
    return state._replace(networks=networks, critic_optimiser=optimiser, rewards=rewards), info


def update_actor(td3: TD3, state: TD3State, x: jax.Array, action_loss: ActionLoss | None) -> tuple[TD3State, Info]:
    """Update the actor on inputs [B, S], then all targets."""
    actor, critics = state.networks
    grads, info = jax.grad(lambda a: actor_loss(td3, a, critics, x, action_loss), has_aux=True)(actor)
    actor, optimiser = descend(td3.actor_optimiser, actor, grads, state.actor_optimiser)
    networks = Networks(actor, critics)
    targets = cast(Networks, optax.incremental_update(networks, state.targets, SOFT_UPDATE))
    return state._replace(networks=networks, targets=targets, actor_optimiser=optimiser), info


def update(
    td3: TD3, state: TD3State, batch: Batch, key: jax.Array, action_loss: ActionLoss | None = None
) -> tuple[TD3State, Info]:
    """Update the critics, then the actor and the targets: with each update, as in the paper's table."""
    state, info = update_critics(td3, state, batch, key)
    state, policy_info = update_actor(td3, state, batch.input, action_loss)
    return state, info | policy_info
