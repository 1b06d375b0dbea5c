# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""An engine of which some processes run stock vLLM ends at start, and does not hang."""

import copy
import multiprocessing
import os
import pickle
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import torch.distributed as dist

from tests.plugins.clean_process import call
from tests.support.checkpoints import draft_config, target_config, write_checkpoint
from tests.support.drafts import engine_config
from vllm_eagle3 import __version__, overlay, ranks

OFF = {"VLLM_EAGLE3_DISABLE": "1"}
# How Ray and vLLM's own executor send a config to their workers.
PICKLERS = (pickle, cloudpickle)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return write_checkpoint(
        tmp_path / "draft", draft_config("llama", draft_vocab_size=256), {}
    )


@pytest.fixture
def store() -> dist.TCPStore:
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def test_ranks_that_all_have_the_overlay_pass(store):
    for rank in range(3):
        ranks.leave_note(store, rank)
    ranks.check_notes(store, 3)


def test_ranks_of_one_version_on_different_machines_pass(store, monkeypatch):
    for rank in range(2):
        host = f"node{rank}"
        monkeypatch.setattr(ranks.socket, "gethostname", lambda host=host: host)
        ranks.leave_note(store, rank)
    ranks.check_notes(store, 2)


@pytest.mark.parametrize(
    "present, said",
    [
        ([0], "on rank 1 and 2 of the 3 ranks of this engine, and active on rank 0 ("),
        (
            [1, 2],
            "on rank 0 of the 3 ranks of this engine, and active on rank 1 and 2 (",
        ),
    ],
)
def test_ranks_without_it_are_named(store, present, said):
    for rank in present:
        ranks.leave_note(store, rank)
    with pytest.raises(ValueError, match="missing or inactive") as refused:
        ranks.check_notes(store, 3, patience_s=0.05)
    assert said in str(refused.value)
    assert f"vllm-eagle3 {__version__} on " in str(refused.value)


def test_a_rank_that_is_late_is_waited_for(store):
    ranks.leave_note(store, 0)
    late = multiprocessing.get_context("fork").Process(
        target=leave_a_late_note, args=(store.port,)
    )
    late.start()
    ranks.check_notes(store, 2, patience_s=30)
    late.join()


class Silent:
    """A store in which rank 0 alone has left its note."""

    def __init__(self) -> None:
        self.waits: list[tuple[list[str], timedelta]] = []

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        self.waits.append((keys, timeout))
        raise RuntimeError("wait timeout")

    def check(self, keys: list[str]) -> bool:
        return keys == [ranks._key(0)]

    def get(self, key: str) -> bytes:
        return ranks._who().encode()


@pytest.mark.parametrize("given, waited", [(0.05, 0.05), (None, ranks.PATIENCE_S)])
def test_all_ranks_are_waited_for_so_long_and_no_longer(given, waited):
    store: Any = Silent()
    with pytest.raises(ValueError, match="inactive on rank 1 of the 2 ranks"):
        ranks.check_notes(store, 2, given)
    assert store.waits == [([ranks._key(0), ranks._key(1)], timedelta(seconds=waited))]


def leave_a_late_note(port: int) -> None:
    import time

    time.sleep(0.3)
    ranks.leave_note(dist.TCPStore("127.0.0.1", port, is_master=False), 1)


def test_another_version_on_a_rank_is_refused(store, monkeypatch):
    ranks.leave_note(store, 0)
    monkeypatch.setattr(ranks, "__version__", "9.9")
    ranks.leave_note(store, 1)
    with pytest.raises(ValueError, match="different versions.*vllm-eagle3 9.9 on "):
        ranks.check_notes(store, 2)


@pytest.mark.parametrize(
    "pickler, environment",
    [(pickle, {}), (cloudpickle, {}), (pickle, {"VLLM_PLUGINS": "eagle3"})],
)
def test_a_config_arrives_where_the_overlay_is(clean_vllm, draft, pickler, environment):
    sent = pickler.dumps(engine_config(draft))
    assert clean_vllm(unpickle, sent, env=environment) == ("eagle3", True)


def unpickle(sent: bytes) -> tuple[str, bool]:
    config = pickle.loads(sent).speculative_config
    return config.method, overlay.is_active()


@pytest.mark.parametrize(
    "environment, reason",
    [
        (OFF, "switched off by VLLM_EAGLE3_DISABLE"),
        ({"VLLM_PLUGINS": ""}, "vLLM did not load the plugin"),
    ],
)
@pytest.mark.parametrize("pickler", PICKLERS)
def test_a_config_is_refused_where_the_overlay_is_off(
    clean_vllm, draft, pickler, environment, reason
):
    sent = pickler.dumps(engine_config(draft))
    with pytest.raises(ValueError, match="comes from vllm-eagle3") as refused:
        clean_vllm(unpickle, sent, env=environment)
    assert reason in str(refused.value)
    assert "on every node" in str(refused.value)


def test_a_config_names_the_package_that_is_missing(clean_vllm, draft):
    sent = pickle.dumps(engine_config(draft))
    with pytest.raises(ModuleNotFoundError, match="vllm_eagle3"):
        clean_vllm(unpickle_without_the_package, sent)


class NotInstalled:
    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == "vllm_eagle3":
            raise ModuleNotFoundError(f"No module named {name!r}")


def unpickle_without_the_package(sent: bytes) -> None:
    for name in [name for name in sys.modules if name.startswith("vllm_eagle3")]:
        del sys.modules[name]
    sys.meta_path.insert(0, NotInstalled())
    pickle.loads(sent)


def test_a_config_of_another_version_is_refused(draft, monkeypatch):
    sent = pickle.dumps(engine_config(draft))
    monkeypatch.setattr(ranks, "__version__", "9.9")
    with pytest.raises(ValueError, match="different versions of vllm-eagle3"):
        pickle.loads(sent)


def test_a_config_of_another_method_goes_anywhere(clean_vllm, draft):
    target = write_checkpoint(draft.parent / "target", target_config(), {})
    from vllm.engine.arg_utils import EngineArgs

    config = EngineArgs(
        model=str(target),
        skip_tokenizer_init=True,
        max_model_len=64,
        speculative_config={"method": "ngram", "num_speculative_tokens": 2},
    ).create_engine_config()
    method, _ = clean_vllm(unpickle, pickle.dumps(config), env=OFF)
    assert method == "ngram"


@pytest.fixture
def meet(monkeypatch, store) -> Callable[..., None]:
    """`meet(config, world=2)` as rank 0, which no other rank joins."""
    from vllm.config import set_current_vllm_config

    monkeypatch.setattr(ranks, "PATIENCE_S", 0.05)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: store)

    def meet(config: Any, world: int = 2) -> None:
        monkeypatch.setattr(dist, "get_world_size", lambda: world)
        with set_current_vllm_config(config):
            ranks._meet_other_ranks()

    return meet


def test_a_config_that_was_made_without_the_overlay_is_refused(draft, meet):
    """The overlay is on all ranks, and off where the engine was started."""
    config = engine_config(draft)
    with pytest.raises(ValueError, match="missing or inactive on rank 1"):
        meet(config)
    del vars(config.speculative_config)[ranks._MADE_BY]
    with pytest.raises(ValueError, match="serves this draft, but its config comes"):
        meet(config)


def test_one_rank_alone_has_nobody_to_agree_with(draft, meet, store):
    config = engine_config(draft)
    del vars(config.speculative_config)[ranks._MADE_BY]
    meet(config, world=1)
    assert not store.check([ranks._key(0)])


def test_ranks_need_not_agree_on_what_the_fork_does_not_serve(
    draft, meet, store, monkeypatch
):
    """No draft, one of another method, one of another class; it says that it is here.

    Others may see the draft otherwise, and look for this rank.
    """
    from vllm.model_executor.models.registry import ModelRegistry

    config = engine_config(draft)
    speculative = config.speculative_config
    (name, *_) = speculative.draft_model_config.architectures
    with monkeypatch.context() as patch:
        models = ModelRegistry.models
        patch.setitem(models, name, models["LlamaForCausalLM"])
        meet(config)
    assert store.check([ranks._key(0)])
    speculative.method = "dflash"
    meet(config)
    config.speculative_config = None
    meet(config)


def test_a_config_can_be_copied(draft):
    config = engine_config(draft).speculative_config
    assert copy.deepcopy(config).num_speculative_tokens == 3


# Below: two ranks of vLLM, each in a process of its own.


def ranks_of_two(folder: Path, switches: list[dict[str, str]]) -> list[str]:
    """Lets two ranks meet; returns what each of them said, empty if it was content."""
    context = multiprocessing.get_context("forkserver")
    said = context.SimpleQueue()
    engine = uuid.uuid4().hex
    processes = [
        context.Process(
            target=call, args=(switch, be_a_rank, rank, engine, folder, said)
        )
        for rank, switch in enumerate(switches)
    ]
    for process in processes:
        process.start()
    answers = dict(said.get() for _ in processes)
    for process in processes:
        process.join()
    return [answers[rank] for rank in range(2)]


def be_a_rank(rank: int, engine: str, folder: Path, said: Any) -> None:
    """What a worker of vLLM does before it loads a model."""
    from vllm.config import set_current_vllm_config
    from vllm.distributed import parallel_state
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    ranks.PATIENCE_S = 2.0
    # vLLM's CPU worker sets it, and names shared memory by it. What an interrupted run
    # of this test left behind must not be in the way.
    os.environ["VLLM_DIST_IDENT"] = engine
    config = engine_config(folder / f"draft{rank}", engine={"tensor_parallel_size": 2})
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/rendezvous",
        world_size=2,
        rank=rank,
        timeout=timedelta(seconds=60),
    )
    try:
        with set_current_vllm_config(config):
            parallel_state.init_distributed_environment(
                2, rank, f"file://{folder}/rendezvous", rank, "gloo"
            )
            parallel_state.ensure_model_parallel_initialized(2, 1)
        said.put((rank, ""))
    except Exception as error:
        said.put((rank, f"{type(error).__name__}: {error}"))


@pytest.fixture
def two_drafts(tmp_path: Path) -> Path:
    for rank in range(2):
        config = draft_config("llama", draft_vocab_size=256)
        write_checkpoint(tmp_path / f"draft{rank}", config, {})
    return tmp_path


Meeting = Callable[[list[dict[str, str]]], list[str]]


@pytest.fixture
def meeting(clean_vllm, two_drafts: Path) -> Meeting:
    del clean_vllm  # Its fork server has imported vLLM.
    return lambda switches: ranks_of_two(two_drafts, switches)


def test_two_ranks_with_the_overlay_start(meeting):
    assert meeting([{}, {}]) == ["", ""]


@pytest.mark.parametrize("stock", [0, 1])
def test_a_rank_of_stock_vllm_ends_the_engine(meeting, stock):
    """It takes no part, it blocks nobody, and the other says so."""
    said = meeting([OFF if rank == stock else {} for rank in range(2)])
    assert said[stock] == ""
    reason = f"ValueError: vllm-eagle3 is missing or inactive on rank {stock} of the 2"
    assert reason in said[1 - stock]
