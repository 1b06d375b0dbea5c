# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""The draft's training, on models of a few thousand weights."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from tests.support.example import EXAMPLE, Example

TRAINING = EXAMPLE / "training"
MODULES = ("batches", "draft", "export", "features", "generate", "loss", "settings")
MODULES += ("target", "train")
AUX_LAYERS = (1, 2, 3)


@pytest.fixture
def code(example: Example, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The training's modules by name."""
    monkeypatch.syspath_prepend(str(TRAINING))
    return SimpleNamespace(**{name: example(name) for name in MODULES})


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small Llama of random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        initializer_range=0.3,
        tie_word_embeddings=True,
        dtype="float32",
    )
    folder = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def recipe(code: SimpleNamespace) -> Any:
    return code.settings.Recipe(
        aux_layers=AUX_LAYERS,
        frequent_ids=64,
        epochs=2,
        batch_tokens=64,
        warmup_steps=2,
        checkpoint_steps=100,
        workers=1,
    )


@pytest.fixture
def target(code: SimpleNamespace, tiny: Path) -> Any:
    return code.target.Target(tiny, torch.float32)


@pytest.fixture
def texts(code: SimpleNamespace, target: Any) -> list[Any]:
    """Ten texts of unlike lengths with the target's own states."""
    draw = torch.Generator().manual_seed(1)
    rows = []
    for length in range(10):
        ids = torch.randint(0, 96, (12 + length,), generator=draw).tolist()
        rows.append({"ids": ids[:4], "answer": ids[4:]})
    return code.features.read_texts(target, rows, AUX_LAYERS)


@pytest.fixture
def head(code: SimpleNamespace, target: Any) -> Any:
    return code.loss.Head.of(target.embeddings, torch.arange(0, 96, 2)[:40])


def random_draft(code: SimpleNamespace, shape: Any, seed: int = 2) -> Any:
    torch.manual_seed(seed)
    draft = code.draft.Draft(shape, len(AUX_LAYERS))
    for name, weight in draft.named_parameters():
        scale = 0.5 if weight.dim() == 1 else 0.3
        weight.data = torch.randn_like(weight) * scale + ("norm" in name)
    return draft


def test_the_target_reads_and_answers_like_transformers(
    code: SimpleNamespace, tiny: Path, target: Any
) -> None:
    model = LlamaForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    prompts = [[5, 9, 11, 40, 41, 3], [7, 8], [90, 2, 17, 17], [1], [33, 4, 4]]
    ending = code.generate.Ending(frozenset(range(0, 96, 12)), 40)
    answers = code.generate.continue_all(target, prompts, ending)
    # Some end early, so that the batch shrinks while others go on.
    assert len({len(answer) for answer in answers}) > 2
    rows = [
        {"ids": ids, "answer": answer}
        for ids, answer in zip(prompts, answers, strict=True)
    ]
    read = code.features.read_texts(target, rows, AUX_LAYERS)
    for row, text in zip(rows, read, strict=True):
        tokens = torch.tensor([row["ids"] + row["answer"]])
        with torch.no_grad():
            output = model(tokens, output_hidden_states=True)
        best = output.logits[0].argmax(-1).tolist()[len(row["ids"]) - 1 : -1]
        assert row["answer"] == best
        assert row["answer"][-1] in ending.stop or len(row["answer"]) == 40
        assert ending.stop.isdisjoint(row["answer"][:-1])
        states = torch.cat([output.hidden_states[i][0] for i in AUX_LAYERS], -1)
        torch.testing.assert_close(text.aux, states, rtol=1e-4, atol=1e-4)
        final = output.hidden_states[-1][0]
        torch.testing.assert_close(text.final, final, rtol=1e-4, atol=1e-4)
        assert text.tokens.tolist() == tokens[0].tolist()
        assert text.answer == len(row["ids"])


def test_sampling_depends_on_the_seed_and_takes_likely_tokens(
    code: SimpleNamespace,
) -> None:
    logits = torch.tensor([[0.0, 2.0, float("-inf"), 1.0]]).repeat(4000, 1)

    def sample(seed: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed)
        return code.generate.choose(logits, draw)

    assert torch.equal(sample(3), sample(3))
    assert not torch.equal(sample(3), sample(4))
    shares = torch.bincount(sample(3), minlength=4) / 4000
    torch.testing.assert_close(shares, logits[0].softmax(-1), rtol=0, atol=0.03)


class Engine:
    """A draft's layer as an engine runs it: token by token, with a cache."""

    def __init__(self, draft: Any, embeddings: torch.Tensor) -> None:
        self.draft, self.embeddings = draft, embeddings
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def forget(self, length: int) -> None:
        del self.keys[length:], self.values[length:]

    def step(self, token: int, state: torch.Tensor) -> torch.Tensor:
        """Runs one token behind the cache; returns the layer's output, `[hidden]`."""
        layer, shape = self.draft.midlayer, self.draft.shape
        embedded = layer.input_layernorm(self.embeddings[token])
        both = torch.cat((embedded, layer.hidden_norm(state)))
        attn, place = layer.self_attn, len(self.keys)
        query = self._turn(attn.q_proj(both), place)
        self.keys.append(self._turn(attn.k_proj(both), place))
        self.values.append(attn.v_proj(both).view(shape.kv_heads, shape.head_dim))
        mixed = []
        for index in range(shape.heads):
            shared = index // (shape.heads // shape.kv_heads)
            keys = torch.stack([keys[shared] for keys in self.keys])
            values = torch.stack([values[shared] for values in self.values])
            weights = (keys @ query[index] / shape.head_dim**0.5).softmax(0)
            mixed.append(weights @ values)
        state = state + attn.o_proj(torch.cat(mixed))
        return state + layer.mlp(layer.post_attention_layernorm(state))

    def _turn(self, flat: torch.Tensor, place: int) -> torch.Tensor:
        shape = self.draft.shape
        first, second = flat.view(-1, shape.head_dim).chunk(2, dim=-1)
        half = shape.head_dim // 2
        angles = place * shape.rope_theta ** (-torch.arange(half) / half)
        turned = torch.complex(first, second) * torch.polar(torch.ones(half), angles)
        return torch.cat((turned.real, turned.imag), dim=-1)


def test_all_chains_at_once_equal_an_engine_with_a_cache(
    code: SimpleNamespace, target: Any, texts: list[Any]
) -> None:
    text, steps = texts[3], 4
    draft = random_draft(code, target.shape)
    tokens = text.tokens.long()
    with torch.no_grad():
        at_once = list(
            draft.chains(
                text.aux[None],
                target.embeddings,
                lambda step, _: tokens.roll(-step - 1)[None],
                steps,
            )
        )
        engine = Engine(draft, target.embeddings)
        for start in range(len(tokens) - steps):
            engine.forget(start)
            state = draft.fc(text.aux[start])
            for step in range(steps):
                state = engine.step(int(tokens[start + step + 1]), state)
                torch.testing.assert_close(
                    at_once[step][0, start], draft.norm(state), rtol=1e-4, atol=1e-4
                )


def test_the_loss_of_a_padded_batch_is_that_of_each_text_alone(
    code: SimpleNamespace, target: Any, texts: list[Any], head: Any, recipe: Any
) -> None:
    draft = random_draft(code, target.shape)
    batch = code.batches.collate(texts[2:6])
    loss, hits = code.loss.loss_of(draft, batch, head, recipe)
    loss.backward()
    got = draft.fc.weight.grad.clone()
    draft.zero_grad()
    losses: list[list[torch.Tensor]] = [[], [], []]
    right: list[list[bool]] = [[], [], []]
    for text in texts[2:6]:
        tokens = text.tokens.long()

        def read(step: int, _: Any, tokens: Any = tokens) -> torch.Tensor:
            return tokens.roll(-step - 1)[None]

        steps = draft.chains(text.aux[None], target.embeddings, read, 3)
        for step, states in enumerate(steps):
            for guessed in range(text.answer + 1, len(tokens)):
                logits = states[0, guessed - step - 2] @ head.rows.T
                goal = (text.final[guessed - 1] @ head.rows.T).softmax(-1)
                row = int(head.index[tokens[guessed]])
                if row >= 0:
                    goal *= 1 - recipe.hard_weight
                    goal[row] += recipe.hard_weight
                losses[step].append(-(goal * logits.log_softmax(-1)).sum())
                right[step].append(int(logits.argmax()) == row)
    means = torch.stack([torch.stack(each).mean() for each in losses])
    expected = (means * torch.tensor(recipe.step_weights)).sum()
    expected.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got, draft.fc.weight.grad, rtol=1e-3, atol=1e-5)
    assert hits == pytest.approx([sum(each) / len(each) for each in right])


def test_training_learns_and_a_resumed_training_is_the_same(
    code: SimpleNamespace,
    target: Any,
    texts: list[Any],
    head: Any,
    recipe: Any,
    tmp_path: Path,
) -> None:
    def new() -> Any:
        draft = random_draft(code, target.shape)
        return code.train.Training(draft, head, texts, recipe)

    straight, first, second = new(), new(), new()
    before, _ = code.loss.loss_of(
        straight.draft, code.batches.collate(texts), head, recipe
    )
    straight.run()
    after, _ = code.loss.loss_of(
        straight.draft, code.batches.collate(texts), head, recipe
    )
    assert after < before
    file = tmp_path / "checkpoint.pt"
    first.run(file, steps=3)
    # Were the file not read, these steps would not reach the end.
    second.run(file, steps=len(second.plan) - 3)
    assert first.step == 3
    assert second.step == straight.step == len(straight.plan) > 6
    for name, weight in straight.draft.state_dict().items():
        assert torch.equal(weight, second.draft.state_dict()[name]), name
        assert not torch.equal(weight, first.draft.state_dict()[name]), name


def test_workers_share_a_batch_without_changing_its_step(
    code: SimpleNamespace, target: Any, texts: list[Any], head: Any, recipe: Any
) -> None:
    draft = random_draft(code, target.shape)
    alone = code.train.Training(draft, head, texts, recipe)
    everything = alone._sums([0, 9])
    parts = [alone._sums([0]), alone._sums([9])]
    guesses = sum(len(texts[i].tokens) - texts[i].answer - 1 for i in (0, 9))
    assert everything[0] == guesses
    error = (everything - sum(parts)).norm() / everything.norm()
    assert error < 0.01
    assert not alone._sums([]).any()
    assert len(alone._sums([])) == len(everything)


def test_a_checkpoint_of_another_recipe_is_refused(
    code: SimpleNamespace,
    target: Any,
    texts: list[Any],
    head: Any,
    recipe: Any,
    tmp_path: Path,
) -> None:
    draft = random_draft(code, target.shape)
    file = tmp_path / "checkpoint.pt"
    code.train.Training(draft, head, texts, recipe).run(file, steps=1)
    other = dataclasses.replace(recipe, seed=1)
    with pytest.raises(ValueError, match="belongs to another training"):
        code.train.Training(draft, head, texts, other).run(file)
    with pytest.raises(ValueError, match="9 texts"):
        code.train.Training(draft, head, texts[1:], recipe).run(file)


def test_groups_hold_every_text_once_and_no_more_tokens_than_allowed(
    code: SimpleNamespace,
) -> None:
    lengths = [5 + (i * 37) % 60 for i in range(200)]
    groups = code.batches.group(lengths, 256, seed=1)
    assert sorted(i for each in groups for i in each) == list(range(200))
    padded = [len(each) * max(lengths[i] for i in each) for each in groups]
    assert max(padded) <= 256
    assert sum(padded) < 1.3 * sum(lengths)
    assert groups == code.batches.group(lengths, 256, seed=1)
    assert groups != code.batches.group(lengths, 256, seed=2)
    assert code.batches.group([300], 256, seed=1) == [[0]]


def test_features_are_those_of_the_target_and_are_not_made_twice(
    code: SimpleNamespace, tiny: Path, recipe: Any, tmp_path: Path
) -> None:
    places = code.settings.Places(tiny, tmp_path)
    places.answers.mkdir()
    rows = [{"ids": [1, 2, 3], "answer": [4, 5]}, {"ids": [6, 7], "answer": [8]}]
    for name in ("0000", "0001"):
        (places.answers / f"{name}.json").write_text(json.dumps(rows))
    code.features.make_features(recipe, places)
    made = [file.stat().st_mtime_ns for file in sorted(places.features.iterdir())]
    (places.features / "0001.safetensors").unlink()
    code.features.make_features(recipe, places)
    again = [file.stat().st_mtime_ns for file in sorted(places.features.iterdir())]
    assert made[0] == again[0] and made[1] < again[1]
    found = list(code.features.load_texts(places.features))
    expected = code.features.read_texts(code.target.Target(tiny), rows, AUX_LAYERS)
    for text, other in zip(found, expected * 2, strict=True):
        assert text.answer == other.answer
        for name in ("tokens", "aux", "final"):
            assert torch.equal(getattr(text, name), getattr(other, name)), name


def test_a_written_draft_reads_back(
    code: SimpleNamespace,
    tiny: Path,
    target: Any,
    texts: list[Any],
    recipe: Any,
    tmp_path: Path,
) -> None:
    draft = random_draft(code, target.shape)
    ids = code.export.frequent_ids(texts, 96, 64)
    code.export.write_draft(draft, ids, tiny, recipe, tmp_path)
    assert json.loads((tmp_path / "frequent_ids.json").read_text()) == ids.tolist()
    weights = load_file(tmp_path / "model.safetensors")
    assert weights.keys() == draft.state_dict().keys()
    for name, weight in draft.state_dict().items():
        assert torch.equal(weights[name], weight.bfloat16()), name
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["eagle_aux_hidden_state_layer_ids"] == list(AUX_LAYERS)
    assert "draft_vocab_size" not in config
    assert config["vocab_size"] == 96


def test_frequent_ids_are_those_of_answers(
    code: SimpleNamespace, texts: list[Any]
) -> None:
    counts = [0] * 96
    for text in texts:
        for token in text.tokens[text.answer :].tolist():
            counts[token] += 1
    order = sorted(range(96), key=lambda token: (-counts[token], token))
    found = code.export.frequent_ids(texts, 96, 20)
    assert found.tolist() == sorted(order[:20])


def test_a_draft_starts_as_the_last_layer_of_the_target(
    code: SimpleNamespace, target: Any, texts: list[Any]
) -> None:
    """With no eye for embeddings it continues the last auxiliary state."""
    text = texts[0]
    draft = code.draft.Draft(target.shape, len(AUX_LAYERS))
    draft.start_from(target)
    for linear in draft.midlayer.self_attn.inputs():
        assert linear.weight[:, : target.shape.hidden].abs().max() < 0.01
        linear.weight.data[:, : target.shape.hidden] = 0
    tokens = text.tokens.long()[None]
    with torch.no_grad():
        (states,) = draft.chains(
            text.aux[None], target.embeddings, lambda *_: tokens, 1
        )
    torch.testing.assert_close(states[0], text.final, rtol=1e-4, atol=1e-4)


def test_the_trained_draft_has_the_parts_of_the_layout_and_fits(
    code: SimpleNamespace,
) -> None:
    folder = EXAMPLE / "backbone"
    config = json.loads((folder / "config.json").read_text())
    shape = code.target.Shape.read(folder)
    with torch.device("meta"):
        expected = code.draft.Draft(shape, 3).state_dict()
    weights = load_file(folder / "model.safetensors")
    found = {name: (w.shape, w.dtype) for name, w in weights.items()}
    assert found == {name: (w.shape, torch.bfloat16) for name, w in expected.items()}
    assert all(weight.isfinite().all() for weight in weights.values())
    assert (folder / "model.safetensors").stat().st_size <= 11_000_000
    recipe = code.settings.Recipe()
    assert config["eagle_aux_hidden_state_layer_ids"] == list(recipe.aux_layers)
    ids = json.loads((folder / "frequent_ids.json").read_text())
    assert ids == sorted(set(ids)) and len(ids) == recipe.frequent_ids
    assert ids[0] >= 0 and ids[-1] < config["vocab_size"]
    # A draft whose halves for embeddings still sleep is one that nobody trained.
    queries = weights["midlayer.self_attn.q_proj.weight"][:, : shape.hidden]
    assert functional.mse_loss(queries, torch.zeros_like(queries)) ** 0.5 > 0.005
