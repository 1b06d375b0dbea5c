# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vllm-eagle3 project
"""What the fork rests on in vLLM that its imports do not show.

Behaviour is pinned by a hash of the body: a function in ``BEHAVIOUR`` may keep its
name and signature and still do something else. A change there means: read it, see
whether our file still fits, then derive the table anew.
"""

from dataclasses import dataclass

MODELS = "vllm/model_executor/models"
HEAD = f"{MODELS}/eagle3_head.py"
VOCABULARY = f"{MODELS}/draft_vocabulary.py"
REBIND = "vllm_eagle3/rebind.py"
OVERLAY = "vllm_eagle3/overlay.py"
GREEDY = "vllm_eagle3/greedy.py"
AUX_LAYER_IDS = "vllm_eagle3/aux_layer_ids.py"
SPECULATORS = "vllm_eagle3/speculators_keys.py"
RANKS = "vllm_eagle3/ranks.py"
ROPE = f"{MODELS}/eagle3_rope.py"
LENGTHS = f"{MODELS}/eagle3_lengths.py"


@dataclass(frozen=True)
class Rest:
    """Something of vLLM, and the file of the fork that rests on it.

    Attributes:
        name: As in the table: ``module:name.member``, or ``module:``.
        file: Our file, as a path in the repository.
        why: What it would break.
    """

    name: str
    file: str
    why: str


_V1 = "vllm.v1.spec_decode.llm_base_proposer:SpecDecodeBaseProposer"
_V2 = "vllm.v1.worker.gpu.spec_decode"
_MODELS = "vllm.model_executor.models"
_LOADER = "vllm.model_executor.model_loader"
_ALGORITHMS = "vllm.transformers_utils.configs.speculators.algos"
_ROPES = "vllm.model_executor.layers.rotary_embedding"

BEHAVIOUR = (
    Rest(f"{_V1}._maybe_share_embeddings", HEAD, "when the draft gets the target's"),
    Rest(f"{_V1}._maybe_share_lm_head", HEAD, "when the draft gets the target's head"),
    Rest(f"{_V1}._greedy_sample", HEAD, "which method of the head is asked"),
    Rest(f"{_V1}.validate_same_kv_cache_group", HEAD, "layers of a draft"),
    Rest(f"{_V2}.eagle.utils:load_eagle_model", HEAD, "sharing on Model Runner V2"),
    Rest(
        f"{_MODELS}.interfaces:LocalArgmaxMixin.get_top_tokens",
        HEAD,
        "the greedy argmax across ranks",
    ),
    Rest(
        f"{_MODELS}.utils:process_eagle_weight",
        HEAD,
        "the flags by which runners see what the draft brings",
    ),
    Rest(
        f"{_LOADER}.utils:initialize_model", HEAD, "parameters that constructors have"
    ),
    Rest(
        f"{_LOADER}.default_loader:DefaultModelLoader.load_weights",
        HEAD,
        "the set that load_weights returns",
    ),
    *(
        Rest(f"{_ROPES}.{table}._compute_cos_sin_cache", ROPE, "rows of a table")
        for table in (
            "yarn_scaling_rope:YaRNScalingRotaryEmbedding",
            "deepseek_scaling_rope:DeepseekScalingRotaryEmbedding",
            "mrope:MRotaryEmbedding",
        )
    ),
    Rest(
        "vllm.v1.worker.gpu_model_runner:GPUModelRunner._input_fits_in_drafter",
        LENGTHS,
        "up to which length the V1 runner drafts",
    ),
    Rest("vllm.plugins:load_general_plugins", OVERLAY, "when and how it is activated"),
    Rest(
        "vllm.config.speculative:SpeculativeConfig.use_eagle",
        GREEDY,
        "which methods draft by EAGLE",
    ),
    Rest(f"{_ALGORITHMS}:update_eagle3", SPECULATORS, "the call that is wrapped"),
    Rest(f"{_ALGORITHMS}:update_peagle", SPECULATORS, "the call that is wrapped"),
    Rest(
        "vllm.v1.worker.worker_base:WorkerWrapperBase.init_device",
        RANKS,
        "the config is current when ranks meet",
    ),
    Rest(
        "vllm.distributed.parallel_state:ensure_model_parallel_initialized",
        RANKS,
        "calls what is wrapped",
    ),
)

# By name only: they are looked up as text.
NAMES = (
    Rest(f"{_MODELS}.registry:_try_load_model_cls", REBIND, "its cache is emptied"),
    Rest(f"{_MODELS}.registry:_try_inspect_model_cls", REBIND, "its cache is emptied"),
    Rest(
        "vllm.config.speculative:SpeculativeConfig.use_local_argmax_reduction",
        GREEDY,
        "the option that is set",
    ),
    Rest(
        "vllm.config.speculative:SpeculativeConfig.draft_sample_method",
        GREEDY,
        "decides whether it may be set",
    ),
    Rest(
        "vllm.config.speculative:SpeculativeConfig.enable_adaptive_verification",
        GREEDY,
        "decides whether it may be set",
    ),
    *(
        Rest(
            "vllm.config.speculative:SpeculativeConfig.draft_model_config",
            file,
            "holds the draft's config",
        )
        for file in (GREEDY, RANKS)
    ),
)

# Whole files, by their path below the package.
REPLACED = tuple(
    Rest(f"model_executor/models/{name}.py", f"{MODELS}/{name}.py", "replaced")
    for name in ("llama_eagle3", "qwen3_eagle3", "deepseek_eagle3")
)
REFERENCES = tuple(
    Rest(f"model_executor/models/{name}.py", VOCABULARY, "vocabulary rules compared")
    for name in ("qwen3_dspark", "qwen3_dflash")
)
