"""An example for each operation whose record carries none: functions, classes and settings.

A name → a short program for it that runs as it stands; the reference shows it and its result.
"""

from __future__ import annotations

EXAMPLES = {
    "BFloat16Tensor": "torch.BFloat16Tensor([1, 2])",
    "BoolTensor": "torch.BoolTensor([True, False])",
    "ByteTensor": "torch.ByteTensor([1, 255])",
    "CharTensor": "torch.CharTensor([1, -1])",
    "DoubleTensor": "torch.DoubleTensor([0.1])",
    "FloatTensor": "torch.FloatTensor([1, 2])",
    "HalfTensor": "torch.HalfTensor([1, 2])",
    "IntTensor": "torch.IntTensor([1, 2])",
    "LongTensor": "torch.LongTensor([1, 2])",
    "ShortTensor": "torch.ShortTensor([1, 2])",
    "alias_copy": "torch.alias_copy(torch.arange(3))",
    "amp.GradScaler": "torch.amp.GradScaler('cpu').get_scale()",
    "amp.autocast": "with torch.amp.autocast('cpu'):\n"
    "    y = torch.ones(2, 2) @ torch.ones(2, 2)\ny",
    "amp.is_autocast_available": "torch.amp.is_autocast_available('cpu')",
    "arange": "torch.arange(0, 10, 3)",
    "are_deterministic_algorithms_enabled": "torch.are_deterministic_algorithms_enabled()",
    "as_strided_copy": "torch.as_strided_copy(torch.arange(5), (3, 2), (1, 1))",
    "as_tensor": "torch.as_tensor([1.5, 2])",
    "asarray": "torch.asarray([1, 2], dtype=torch.float32)",
    "atleast_1d": "torch.atleast_1d(torch.tensor(3))",
    "atleast_2d": "torch.atleast_2d(torch.arange(3))",
    "atleast_3d": "torch.atleast_3d(torch.arange(3)).shape",
    "autocast": "with torch.autocast('cpu', dtype=torch.bfloat16):\n"
    "    y = torch.ones(2, 2) @ torch.ones(2, 2)\ny.dtype",
    "autograd.Variable": "torch.autograd.Variable(torch.ones(2), requires_grad=True)",
    "autograd.backward": "x = torch.tensor(3.0, requires_grad=True)\n"
    "torch.autograd.backward(x ** 2)\nx.grad",
    "autograd.detect_anomaly": "with torch.autograd.detect_anomaly(check_nan=True):\n"
    "    found = torch.is_anomaly_enabled()\nfound",
    "autograd.functional.hessian": "torch.autograd.functional.hessian("
    "lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))",
    "autograd.functional.hvp": "torch.autograd.functional.hvp("
    "lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))",
    "autograd.functional.jacobian": "torch.autograd.functional.jacobian("
    "lambda x: x ** 2, torch.tensor([1.0, 2.0]))",
    "autograd.functional.jvp": "torch.autograd.functional.jvp("
    "lambda x: x ** 2, torch.tensor([1.0, 2.0]), torch.ones(2))",
    "autograd.functional.vhp": "torch.autograd.functional.vhp("
    "lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))",
    "autograd.functional.vjp": "torch.autograd.functional.vjp("
    "lambda x: x ** 2, torch.tensor([1.0, 2.0]), torch.ones(2))",
    "autograd.grad": "x = torch.tensor(3.0, requires_grad=True)\ntorch.autograd.grad(x ** 2, x)",
    "autograd.gradcheck": "x = torch.ones(2, dtype=torch.float64, requires_grad=True)\n"
    "torch.autograd.gradcheck(torch.sin, (x,))",
    "autograd.gradgradcheck": "x = torch.ones(2, dtype=torch.float64, requires_grad=True)\n"
    "torch.autograd.gradgradcheck(torch.sin, (x,))",
    "autograd.graph.get_gradient_edge": "x = torch.ones(2, requires_grad=True)\n"
    "torch.autograd.graph.get_gradient_edge(x * 2).output_nr",
    "autograd.graph.increment_version": "x = torch.ones(2)\n"
    "torch.autograd.graph.increment_version(x)\nx._version",
    "autograd.set_detect_anomaly": "with torch.autograd.set_detect_anomaly(False):\n"
    "    found = torch.is_anomaly_enabled()\nfound",
    "backends.cudnn.is_available": "torch.backends.cudnn.is_available()",
    "backends.mps.is_available": "torch.backends.mps.is_available()",
    "bernoulli": "torch.bernoulli(torch.tensor([0.0, 0.5, 1.0]))",
    "block_diag": "torch.block_diag(torch.ones(2, 2), torch.tensor([[3.0]]))",
    "broadcast_shapes": "torch.broadcast_shapes((2, 1), (1, 3))",
    "broadcast_tensors": "torch.broadcast_tensors(torch.arange(2), torch.zeros(2, 1))",
    "can_cast": "torch.can_cast(torch.float64, torch.int32)",
    "cartesian_prod": "torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))",
    "cdist": "torch.cdist(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))",
    "celu_": "torch.celu_(torch.tensor([-1.0, 1.0]))",
    "chain_matmul": "torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))",
    "clear_autocast_cache": "torch.clear_autocast_cache()\ntorch.is_autocast_cache_enabled()",
    "conj": "torch.conj(torch.tensor([1 + 2j]))",
    "cpu.synchronize": "torch.cpu.synchronize()\ntorch.get_num_threads() >= 1",
    "cuda.amp.GradScaler": "torch.cuda.amp.GradScaler(enabled=False).is_enabled()",
    "cuda.device_count": "torch.cuda.device_count()",
    "cuda.empty_cache": "torch.cuda.empty_cache()\ntorch.cuda.is_available()",
    "cuda.is_available": "torch.cuda.is_available()",
    "cuda.manual_seed": "torch.cuda.manual_seed(0)\ntorch.cuda.is_available()",
    "cuda.manual_seed_all": "torch.cuda.manual_seed_all(0)\ntorch.cuda.is_available()",
    "cuda.synchronize": "try:\n    torch.cuda.synchronize()\n"
    "except AssertionError as error:\n    print(error)",
    "detach_": "x = torch.ones(2, requires_grad=True) * 2\ntorch.detach_(x).requires_grad",
    "detach_copy": "torch.detach_copy(torch.ones(2, requires_grad=True)).requires_grad",
    "diagonal_copy": "torch.diagonal_copy(torch.arange(4).reshape(2, 2))",
    "einsum": "torch.einsum('ij,jk->ik', torch.ones(2, 3), torch.ones(3, 2))",
    "embedding_renorm_": "torch.embedding_renorm_("
    "torch.tensor([[3.0, 4.0]]), torch.tensor([0]), 1.0, 2.0)",
    "enable_grad": "x = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n"
    "    with torch.enable_grad():\n        y = x * 2\ny.requires_grad",
    "expand_copy": "torch.expand_copy(torch.arange(2), (2, 2))",
    "eye": "torch.eye(2, 3)",
    "fill": "torch.fill(torch.zeros(2), 5)",
    "fill_": "torch.fill_(torch.zeros(2), 5)",
    "from_numpy": "torch.from_numpy(np.array([1.5, 2.5]))",
    "frombuffer": "torch.frombuffer(np.array([1, 2]), dtype=torch.int64)",
    "func.functionalize": "torch.func.functionalize(torch.sin)(torch.tensor(0.0))",
    "func.grad": "torch.func.grad(lambda x: x ** 2)(torch.tensor(3.0))",
    "func.grad_and_value": "torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.0))",
    "func.hessian": "torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))",
    "func.jacfwd": "torch.func.jacfwd(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))",
    "func.jacrev": "torch.func.jacrev(lambda x: x ** 2)(torch.tensor([1.0, 2.0]))",
    "func.jvp": "torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(1.0),))",
    "func.linearize": "y, f = torch.func.linearize(torch.sin, torch.tensor(0.0))\n"
    "f(torch.tensor(1.0))",
    "func.vjp": "y, f = torch.func.vjp(torch.sin, torch.tensor(0.0))\nf(torch.tensor(1.0))",
    "func.vmap": "torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))",
    "get_autocast_dtype": "torch.get_autocast_dtype('cpu')",
    "get_default_device": "torch.get_default_device()",
    "get_default_dtype": "torch.get_default_dtype()",
    "get_deterministic_debug_mode": "torch.get_deterministic_debug_mode()",
    "get_float32_matmul_precision": "torch.get_float32_matmul_precision()",
    "get_num_interop_threads": "torch.get_num_interop_threads()",
    "get_num_threads": "torch.get_num_threads()",
    "get_rng_state": "torch.get_rng_state().shape",
    "imag": "torch.imag(torch.tensor([1 + 2j]))",
    "inference_mode": "with torch.inference_mode():\n    x = torch.ones(2)\nx.is_inference()",
    "initial_seed": "torch.manual_seed(7)\ntorch.initial_seed()",
    "is_anomaly_check_nan_enabled": "torch.is_anomaly_check_nan_enabled()",
    "is_anomaly_enabled": "torch.is_anomaly_enabled()",
    "is_autocast_cache_enabled": "torch.is_autocast_cache_enabled()",
    "is_autocast_enabled": "torch.is_autocast_enabled('cpu')",
    "is_deterministic_algorithms_warn_only_enabled": ""
    "torch.is_deterministic_algorithms_warn_only_enabled()",
    "is_grad_enabled": "torch.is_grad_enabled()",
    "is_inference": "torch.is_inference(torch.ones(2))",
    "is_inference_mode_enabled": "torch.is_inference_mode_enabled()",
    "is_same_size": "torch.is_same_size(torch.ones(2), torch.ones(3))",
    "is_storage": "torch.is_storage(torch.ones(2))",
    "is_tensor": "torch.is_tensor(torch.ones(2))",
    "is_warn_always_enabled": "torch.is_warn_always_enabled()",
    "linspace": "torch.linspace(0, 1, 5)",
    "logspace": "torch.logspace(0, 2, 3)",
    "lu": "torch.lu(torch.tensor([[4.0, 3.0], [6.0, 3.0]]))",
    "manual_seed": "torch.manual_seed(0)\ntorch.rand(2)",
    "meshgrid": "torch.meshgrid(torch.arange(2), torch.arange(3), indexing='ij')",
    "narrow_copy": "torch.narrow_copy(torch.arange(5), 0, 1, 3)",
    "nn.Parameter": "nn.Parameter(torch.ones(2))",
    "nn.functional.celu_": "F.celu_(torch.tensor([-1.0, 1.0]))",
    "nn.functional.elu_": "F.elu_(torch.tensor([-1.0, 1.0]))",
    "nn.functional.hardtanh_": "F.hardtanh_(torch.tensor([-2.0, 0.5]))",
    "nn.functional.leaky_relu_": "F.leaky_relu_(torch.tensor([-1.0, 1.0]))",
    "nn.functional.relu_": "F.relu_(torch.tensor([-1.0, 1.0]))",
    "nn.functional.rrelu_": "F.rrelu_(torch.tensor([-1.0, 1.0]))",
    "nn.functional.selu_": "F.selu_(torch.tensor([-1.0, 1.0]))",
    "nn.functional.threshold_": "F.threshold_(torch.tensor([-1.0, 1.0]), 0.0, 9.0)",
    "nn.init.calculate_gain": "nn.init.calculate_gain('relu')",
    "nn.init.constant_": "nn.init.constant_(torch.empty(2), 0.5)",
    "nn.init.dirac_": "nn.init.dirac_(torch.empty(1, 1, 3))",
    "nn.init.eye_": "nn.init.eye_(torch.empty(2, 2))",
    "nn.init.kaiming_normal_": "nn.init.kaiming_normal_(torch.empty(2, 3))",
    "nn.init.kaiming_uniform_": "nn.init.kaiming_uniform_(torch.empty(2, 3))",
    "nn.init.normal_": "nn.init.normal_(torch.empty(3))",
    "nn.init.ones_": "nn.init.ones_(torch.empty(2))",
    "nn.init.orthogonal_": "nn.init.orthogonal_(torch.empty(2, 2))",
    "nn.init.sparse_": "nn.init.sparse_(torch.empty(4, 2), sparsity=0.5)",
    "nn.init.trunc_normal_": "nn.init.trunc_normal_(torch.empty(3))",
    "nn.init.uniform_": "nn.init.uniform_(torch.empty(3))",
    "nn.init.xavier_normal_": "nn.init.xavier_normal_(torch.empty(2, 3))",
    "nn.init.xavier_uniform_": "nn.init.xavier_uniform_(torch.empty(2, 3))",
    "nn.init.zeros_": "nn.init.zeros_(torch.empty(2))",
    "nn.utils.clip_grad_norm_": "w = torch.ones(2, requires_grad=True)\n(w * 3).sum().backward()\n"
    "torch.nn.utils.clip_grad_norm_([w], 1.0)",
    "nn.utils.clip_grad_value_": "w = torch.ones(2, requires_grad=True)\n"
    "(w * 3).sum().backward()\ntorch.nn.utils.clip_grad_value_([w], 1.0)\nw.grad",
    "nn.utils.clip_grads_with_norm_": "w = torch.ones(2, requires_grad=True)\n"
    "(w * 3).sum().backward()\n"
    "torch.nn.utils.clip_grads_with_norm_([w], 1.0, torch.tensor(6.0))\nw.grad",
    "nn.utils.get_total_norm": "torch.nn.utils.get_total_norm([torch.tensor([3.0, 4.0])])",
    "nn.utils.parameters_to_vector": "torch.nn.utils.parameters_to_vector("
    "[torch.ones(2), torch.zeros(1)])",
    "nn.utils.vector_to_parameters": "w = torch.zeros(2)\n"
    "torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [w])\nw",
    "no_grad": "x = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n"
    "    y = x * 2\ny.requires_grad",
    "normal": "torch.normal(0.0, 1.0, (3,))",
    "numel": "torch.numel(torch.ones(2, 3))",
    "optim.Optimizer": "w = torch.ones(1, requires_grad=True)\n"
    "isinstance(torch.optim.SGD([w], lr=0.1), torch.optim.Optimizer)",
    "pca_lowrank": "u, s, v = torch.pca_lowrank(torch.eye(4), q=2)\ns.shape",
    "permute_copy": "torch.permute_copy(torch.ones(2, 3), (1, 0)).shape",
    "positive": "torch.positive(torch.tensor([-1.0, 2.0]))",
    "randint": "torch.randint(0, 10, (3,))",
    "randint_like": "torch.randint_like(torch.zeros(3), 10)",
    "random.get_rng_state": "torch.random.get_rng_state().dtype",
    "random.initial_seed": "torch.random.manual_seed(7)\ntorch.random.initial_seed()",
    "random.manual_seed": "torch.random.manual_seed(0)\ntorch.rand(2)",
    "random.seed": "torch.random.seed() >= 0",
    "random.set_rng_state": "s = torch.random.get_rng_state()\na = torch.rand(1)\n"
    "torch.random.set_rng_state(s)\na == torch.rand(1)",
    "real": "torch.real(torch.tensor([1 + 2j]))",
    "resize_as_": "torch.resize_as_(torch.ones(4), torch.zeros(2))",
    "resolve_conj": "torch.resolve_conj(torch.tensor([1 + 2j]).conj())",
    "resolve_neg": "torch.resolve_neg(torch.tensor([1.0]))",
    "result_type": "torch.result_type(torch.tensor([1]), 1.5)",
    "seed": "torch.seed() >= 0",
    "segment_reduce": "torch.segment_reduce("
    "torch.tensor([1.0, 2.0, 3.0]), 'sum', lengths=torch.tensor([2, 1]))",
    "select_copy": "torch.select_copy(torch.arange(4).reshape(2, 2), 0, 1)",
    "selu_": "torch.selu_(torch.tensor([-1.0, 1.0]))",
    "set_autocast_enabled": "torch.set_autocast_enabled('cpu', True)\n"
    "torch.is_autocast_enabled('cpu')",
    "set_default_device": "torch.set_default_device('meta')\ntorch.ones(2).device",
    "set_default_dtype": "torch.set_default_dtype(torch.float64)\ntorch.ones(1).dtype",
    "set_default_tensor_type": "torch.set_default_tensor_type(torch.DoubleTensor)\n"
    "torch.tensor(0.1).dtype",
    "set_float32_matmul_precision": "torch.set_float32_matmul_precision('high')\n"
    "torch.get_float32_matmul_precision()",
    "set_flush_denormal": "torch.set_flush_denormal(False)",
    "set_grad_enabled": "with torch.set_grad_enabled(False):\n    on = torch.is_grad_enabled()\non",
    "set_num_interop_threads": "torch.set_num_interop_threads(1)\ntorch.get_num_interop_threads()",
    "set_num_threads": "torch.set_num_threads(1)\ntorch.get_num_threads()",
    "set_printoptions": "torch.set_printoptions(precision=2)\ntorch.tensor([0.123456])",
    "set_rng_state": "s = torch.get_rng_state()\na = torch.rand(1)\n"
    "torch.set_rng_state(s)\na == torch.rand(1)",
    "set_warn_always": "torch.set_warn_always(True)\ntorch.is_warn_always_enabled()",
    "slice_copy": "torch.slice_copy(torch.arange(5), 0, 1, 4, 2)",
    "split_copy": "torch.split_copy(torch.arange(4), 2)",
    "split_with_sizes_copy": "torch.split_with_sizes_copy(torch.arange(4), [1, 3])",
    "squeeze_copy": "torch.squeeze_copy(torch.ones(1, 2, 1)).shape",
    "stft": "torch.stft(torch.ones(8), 4, return_complex=True).shape",
    "svd_lowrank": "u, s, v = torch.svd_lowrank(torch.eye(4), q=2)\ns.shape",
    "t_copy": "torch.t_copy(torch.ones(2, 3)).shape",
    "tensor": "torch.tensor([[1, 2], [3, 4]])",
    "threshold_": "torch.threshold_(torch.tensor([-1.0, 1.0]), 0.0, 9.0)",
    "transpose_copy": "torch.transpose_copy(torch.ones(2, 3), 0, 1).shape",
    "typename": "torch.typename(torch.ones(2))",
    "unbind_copy": "torch.unbind_copy(torch.arange(2))",
    "unfold_copy": "torch.unfold_copy(torch.arange(5), 0, 3, 1)",
    "unravel_index": "torch.unravel_index(torch.tensor([5]), (2, 3))",
    "unsafe_chunk": "torch.unsafe_chunk(torch.arange(4), 2)",
    "unsafe_split": "torch.unsafe_split(torch.arange(4), 2)",
    "unsafe_split_with_sizes": "torch.unsafe_split_with_sizes(torch.arange(4), [1, 3])",
    "unsqueeze_copy": "torch.unsqueeze_copy(torch.ones(2), 0).shape",
    "use_deterministic_algorithms": "torch.use_deterministic_algorithms(True)\n"
    "torch.are_deterministic_algorithms_enabled()",
    "utils.checkpoint.checkpoint": "x = torch.tensor(0.5, requires_grad=True)\n"
    "torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).backward()\nx.grad",
    "view_as_complex_copy": "torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))",
    "view_as_real_copy": "torch.view_as_real_copy(torch.tensor([1 + 2j]))",
    "view_copy": "torch.view_copy(torch.arange(4), (2, 2))",
    "vmap": "torch.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))",
    "zero_": "torch.zero_(torch.ones(2))",
}

_SAME = {
    "autograd.enable_grad": "enable_grad",
    "autograd.inference_mode": "inference_mode",
    "autograd.no_grad": "no_grad",
    "autograd.set_grad_enabled": "set_grad_enabled",
    "autograd.grad_mode.enable_grad": "enable_grad",
    "autograd.grad_mode.inference_mode": "inference_mode",
    "autograd.grad_mode.no_grad": "no_grad",
    "autograd.grad_mode.set_grad_enabled": "set_grad_enabled",
}
EXAMPLES |= {
    name: EXAMPLES[plain].replace(f"torch.{plain}(", f"torch.{name}(")
    for name, plain in _SAME.items()
}
EXAMPLES["autograd.gradcheck.gradcheck"] = (
    "from torch.autograd.gradcheck import gradcheck\n"
    "x = torch.ones(2, dtype=torch.float64, requires_grad=True)\ngradcheck(torch.sin, (x,))"
)
EXAMPLES["nn.parameter.Parameter"] = "nn.parameter.Parameter(torch.ones(2))"
EXAMPLES |= {
    f"signal.windows.{kind}": f"torch.signal.windows.{kind}(5{more})"
    for kind, more in {
        "bartlett": "",
        "blackman": "",
        "cosine": "",
        "exponential": "",
        "gaussian": "",
        "general_cosine": ", a=[0.5, 0.5]",
        "general_hamming": "",
        "hamming": "",
        "hann": "",
        "kaiser": "",
        "nuttall": "",
    }.items()
}
_STEP = "w = torch.tensor(1.0, requires_grad=True)\nopt = {}\n(w * 2).backward()\nopt.step()\n{}"
EXAMPLES |= {
    f"optim.{kind}": _STEP.format(f"torch.optim.{kind}([w], lr=0.1)", "w")
    for kind in "Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop SGD".split()
}
EXAMPLES |= {
    f"optim.lr_scheduler.{kind}": _STEP.format(
        f"torch.optim.SGD([w], lr=0.1)\nplan = torch.optim.lr_scheduler.{kind}(opt{more})",
        f"plan.step({metric})\nplan.get_last_lr()",
    )
    for kind, more, metric in (
        ("ConstantLR", "", ""),
        ("CosineAnnealingLR", ", T_max=10", ""),
        ("ExponentialLR", ", gamma=0.9", ""),
        ("LambdaLR", ", lambda epoch: 0.5 ** epoch", ""),
        ("LinearLR", "", ""),
        ("MultiStepLR", ", milestones=[1]", ""),
        ("MultiplicativeLR", ", lambda epoch: 0.5", ""),
        ("PolynomialLR", "", ""),
        ("ReduceLROnPlateau", "", "1.0"),
        ("StepLR", ", step_size=1", ""),
    )
}
EXAMPLES["optim.lr_scheduler.LRScheduler"] = _STEP.format(
    "torch.optim.SGD([w], lr=0.1)\nplan = torch.optim.lr_scheduler.StepLR(opt, step_size=1)",
    "isinstance(plan, torch.optim.lr_scheduler.LRScheduler)",
)
