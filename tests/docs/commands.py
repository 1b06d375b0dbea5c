# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What runs each command that the documentation shows.

`KNOWN` has them as `python -m tests.docs.shown` prints those that are missing.
Its values say what runs a command: `TestOf` a test, `InFile` a line of a workflow or
script. test_commands.py looks at them, and at the options of each command.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TestOf:
    """A test that runs the command, or what it runs, under other names and ports."""

    __test__ = False  # for pytest, which collects what is called so

    file: str
    name: str


@dataclass(frozen=True)
class InFile:
    """A file of the repository that has the command in it."""

    file: str
    text: str


Proof = TestOf | InFile

_SERVED = TestOf(
    "tests/serve/test_serve.py", "test_a_chat_answer_is_the_one_without_speculation"
)
_VOCABULARIES = TestOf(
    "tests/serve/test_make.py", "test_every_vocabulary_is_built_and_served"
)
_OWN_PAIR = TestOf(
    "tests/serve/test_launcher.py", "test_an_own_pair_is_served_by_a_plain_vllm_serve"
)
_FURTHER = TestOf(
    "tests/serve/test_launcher.py", "test_further_arguments_come_last_so_that_they_win"
)
_GPU = TestOf(
    "tests/serve/test_launcher.py", "test_a_gpu_gets_no_options_that_are_for_cpus"
)
_CHAT = TestOf(
    "tests/serve/test_serve.py",
    "test_a_chat_in_the_terminal_keeps_the_conversation_and_says_what_was_accepted",
)
_SHOWN = TestOf(
    "tests/serve/test_serve.py",
    "test_the_commands_of_the_quick_start_show_what_they_say",
)
_WHEEL = TestOf(
    "tests/plugins/test_wheel.py",
    "test_an_installed_wheel_runs_the_files_that_it_carries",
)
_STATUS = TestOf(
    "tests/plugins/test_cli.py",
    "test_the_installed_command_reports_an_active_overlay",
)
_CHECK = TestOf(
    "tests/check/test_command.py",
    "test_the_installed_command_reads_a_draft_and_says_nothing_else",
)
_README = TestOf(
    "tests/check/test_readme.py", "test_the_report_in_the_readme_is_todays"
)
_REFUSED = TestOf(
    "tests/serve/test_serve.py",
    "test_a_draft_with_a_wrong_offset_ends_the_server_at_start",
)
_EXIT_CODES = TestOf("tests/check/test_command.py", "test_exit_codes")
_JSON = TestOf("tests/check/test_command.py", "test_json_has_everything_that_text_has")
_LAYOUTS = TestOf(
    "tests/layouts/test_stock_counts.py", "test_the_command_counts_and_lists"
)
_MODELS = InFile("tests/support/example.py", '["build_target.py"]')
_DRAFTS = InFile("tests/support/example.py", '["build_draft.py", "--all"]')
_COMMON = InFile("requirements/cpu.txt", "-r common.txt")
_TRAINING = TestOf(
    "tests/examples/test_training.py",
    "test_training_learns_and_a_resumed_training_is_the_same",
)
_CI = InFile(".ci/run", "exec make test")
_NATIVE_WHEEL = TestOf(
    "tests/native/test_build.py",
    "test_a_wheel_carries_the_operators_for_any_python_and_machine",
)
_WHEELS = TestOf(
    "tests/export/test_wheels.py",
    "test_a_source_distribution_and_a_wheel_for_any_machine_are_built",
)
_BUILD = TestOf(
    "tests/export/test_build_from_source.py",
    "test_the_checkout_is_patched_and_builds_itself_with_its_own_variables",
)
_PATCHED = TestOf(
    "tests/export/test_upstream.py", "test_each_patch_applies_and_its_tests_pass"
)

KNOWN: dict[str, tuple[Proof, ...]] = {
    # Setting up, serving
    "make serve": (_SERVED,),
    "make serve VOCAB=reduced": (_VOCABULARIES,),
    "make serve VOCAB=default": (_VOCABULARIES,),
    "make serve VOCAB=full-d2t": (_VOCABULARIES,),
    "make serve TARGET=path/or/hub-id DRAFT=path/or/hub-id": (_OWN_PAIR,),
    "make serve TARGET=… DRAFT=… BACKEND=cuda VENV=.venv-cuda PORT=9000 "
    "SPEC_TOKENS=5": (_GPU,),
    'make serve TARGET=… DRAFT=… SERVE_ARGS="--max-model-len 8192 --max-num-seqs 64"': (
        _FURTHER,
    ),
    "make chat": (_CHAT,),
    "make test": (_CI,),
    "curl -s http://localhost:8000/v1/chat/completions -H "
    '\'Content-Type: application/json\' -d \' {"model": "smollm2", '
    '"temperature": 0, "messages": [{"role": "user", "content": '
    '"What is the capital of France?"}]}\' | grep -o \'"content":"[^"]*"\'': (_SHOWN,),
    "curl -s http://localhost:8000/metrics | grep -E "
    "'^vllm:spec_decode_num_(drafts|draft_tokens|accepted_tokens)_total'": (_SHOWN,),
    "pip install .": (_WHEEL,),
    'vllm serve TARGET --speculative-config \'{"method": "eagle3", '
    '"model": "DRAFT", "num_speculative_tokens": 3}\'': (_OWN_PAIR, _SERVED),
    # The command vllm-eagle3
    "vllm-eagle3 status": (_STATUS,),
    ".venv/bin/vllm-eagle3 status": (_STATUS,),
    "vllm-eagle3 check DRAFT --target TARGET": (_CHECK,),
    ".venv/bin/vllm-eagle3 check build/smollm2/draft-full "
    "--target build/smollm2/target": (_CHECK,),
    "vllm-eagle3 check my-draft --target target": (_README,),
    'vllm serve target --speculative-config \'{"method": "eagle3", '
    '"model": "my-draft", "num_speculative_tokens": 3}\' 2>&1 | '
    "grep -m1 -o 'ValueError: .*'": (_REFUSED,),
    "vllm-eagle3 check ./my-draft --target ./my-target --strict || exit 1": (
        _EXIT_CODES,
    ),
    "vllm-eagle3 check DRAFT --target TARGET --json": (_JSON,),
    "vllm-eagle3 check ./my-draft --target ./my-target --json": (_JSON,),
    ".venv/bin/python -m tests.layouts.stock": (_LAYOUTS,),
    ".venv/bin/python -m tests.layouts.stock --write": (_LAYOUTS,),
    # Building
    'pip install "setuptools>=77.0.3,<81" cmake ninja': (_NATIVE_WHEEL,),
    "pip install . --no-deps --no-build-isolation": (_NATIVE_WHEEL,),
    "make wheel": (_WHEELS,),
    "git clone --branch v0.33.0 https://github.com/vllm-project/vllm ~/vllm": (_BUILD,),
    "make build-from-source VLLM_SOURCE=~/vllm BUILD_PYTHON=~/vllm-env/bin/python": (
        _BUILD,
    ),
    "pip download vllm==0.33.0 --no-deps --dest ~/wheels": (
        InFile("tools/vllm_tree.py", '"pip", "download"'),
    ),
    "export VLLM_USE_PRECOMPILED=1 "
    "VLLM_PRECOMPILED_WHEEL_LOCATION=$(ls ~/wheels/vllm-0.33.0-*.whl)": (_BUILD,),
    'python -c "import vllm.model_executor.models.eagle3_head as m; '
    'print(m.__file__)"': (_PATCHED,),
    "vllm-eagle3 export-patch --vllm ~/vllm --output patches": (
        TestOf(
            "tests/export/test_series.py",
            "test_the_command_says_what_it_wrote_and_what_comes_next",
        ),
    ),
    'git -C ~/vllm am --keep-non-patch --signoff "$PWD"/patches/*.patch': (
        TestOf(
            "tests/export/test_series.py",
            "test_git_am_makes_the_commits_with_their_tags_and_a_signature",
        ),
    ),
    "vllm-eagle3 drift --vllm path/to/vllm": (
        TestOf(
            "tests/drift/test_drift.py", "test_the_findings_are_shown_with_our_files"
        ),
    ),
    "make test-vllm VERSION=0.33.0": (
        TestOf(
            "tests/versions/test_tools.py",
            "test_a_release_that_has_moved_nothing_goes_on_to_the_tests",
        ),
    ),
    # Contributing
    "make bench": (InFile("make/bench.mk", "benchmarks.bench"),),
    ".venv/bin/python -m benchmarks.draft_head": (
        InFile("benchmarks/bench.py", '"draft_head"'),
    ),
    ".venv/bin/python -m benchmarks.draft_head --tails": (
        InFile("benchmarks/bench.py", '"draft_head"'),
    ),
    ".venv/bin/python -m benchmarks.serve": (InFile("benchmarks/bench.py", '"serve"'),),
    ".venv/bin/python -m benchmarks.startup": (
        InFile("benchmarks/bench.py", '"startup"'),
    ),
    "make lint": (InFile(".github/workflows/lint.yml", "run: make lint"),),
    ".venv/bin/pre-commit install": (
        InFile(".github/workflows/lint.yml", "run: .venv/bin/pre-commit install"),
    ),
    "make docs": (InFile(".github/workflows/docs.yml", "run: make docs"),),
    # The example
    "pip install -r requirements/common.txt": (_COMMON,),
    "python examples/smollm2_eagle3/build_target.py": (_MODELS,),
    "python examples/smollm2_eagle3/build_draft.py --all": (_DRAFTS,),
    "python examples/smollm2_eagle3/serve.py --vocab reduced": (
        TestOf(
            "tests/serve/test_serve.py",
            "test_the_reduced_vocabulary_changes_no_answer",
        ),
    ),
    "python examples/smollm2_eagle3/chat.py": (_CHAT,),
    "python examples/smollm2_eagle3/training/run.py": (_TRAINING,),
    "python examples/smollm2_eagle3/training/run.py --stages evaluate": (_TRAINING,),
    "python examples/smollm2_eagle3/training/run.py --stages evaluate --draft "
    "build/smollm2/draft-reduced": (_TRAINING,),
}
