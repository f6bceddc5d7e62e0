"""Choosing a variant for every primitive of a kernel, and lowering what is left.

In: a kernel's module in the tile dialect, a device.  Out: `Dispatched`: a new module of scf, memref and vector ops, and
what was chosen for each call.  DispatchFailed names every variant that doesn't take a call, what it lacks and the
values, at the call's place in the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from warpsmith.devices import Device
from warpsmith.dtypes import from_numpy
from warpsmith.errors import DispatchFailed, InvalidTileProgram, did_you_mean
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import is_pure
from warpsmith.ir.core.ssa import Block, Location, Operation, Value
from warpsmith.ir.core.types import MemRefType
from warpsmith.ir.dialects import func, tile
from warpsmith.kernel import Argument, Launch
from warpsmith.kernel import Kernel as LaunchableKernel
from warpsmith.tile.dispatch.advice import advice
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.finish import finish
from warpsmith.tile.dispatch.registry import ALIASES, Variant, variants_of
from warpsmith.tile.dispatch.storage import Ids, Storage
from warpsmith.tile.frontend.source import span_at
from warpsmith.tile.frontend.values import ParameterInfo
from warpsmith.tile.model.active import Active, everyone, narrow, narrow_loop
from warpsmith.tile.model.bounds import region_outside
from warpsmith.tile.model.buffers import BufferInfo, RegionInfo, buffer_of
from warpsmith.tile.model.scopes import WARP
from warpsmith.tile.model.uniform import Known, Uniformity
from warpsmith.tile.program import Kernel

__all__ = ["Choice", "Dispatch", "Dispatched", "dispatch"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What became of one call: the variant, its partition in words, and why those before it weren't taken."""

    call: str
    primitive: str
    scope: str
    variant: str
    partition: str
    rejected: tuple[tuple[str, str], ...]
    location: Location


@dataclass(frozen=True, eq=False, slots=True)
class Dispatch:
    """Where a kernel came from: the program, and what became of each of its calls."""

    program: Kernel
    choices: tuple[Choice, ...]


Dispatched: TypeAlias = LaunchableKernel[Dispatch]
"""A kernel below its primitives.  Its outputs are the buffers that it writes; they hold something before."""


@dataclass(eq=False, slots=True)
class _Walk:
    """The state of one kernel's dispatch."""

    kernel: Kernel
    device: Device
    storage: Storage
    uniform: Uniformity
    choices: list[Choice] = field(default_factory=list[Choice])

    def block(self, block: Block, active: Active) -> None:
        for op in block:
            if tile.is_primitive(op):
                self.call(op, active)
            elif op.name in ("tile.load", "tile.store"):
                buffer, *indices = op.operands if op.name == "tile.load" else op.operands[1:]
                self._check_inside(op, active, buffer_of(buffer), indices, (None,) * len(indices))
            elif op.name == "nvvm.bar.warp.sync":
                _check_whole_warps(op, active)
            elif op.name == "scf.if":
                for number, region in enumerate(op.regions):
                    if region.blocks:
                        inside = narrow(active, op.operands[0], self.uniform, taken=number == 0)
                        self.block(region.blocks[0], inside)
            elif op.regions:
                inside = narrow_loop(active, op, self.uniform) if op.name in ("scf.for", "scf.while") else active
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner, inside)

    def call(self, op: Operation, active: Active) -> None:
        """Replace one primitive by the first variant that takes it."""
        call = CallContext(op, self.kernel.launch, active, self.device, self.storage, Builder.before(op))
        for region in call.regions.values():
            self._check_inside(op, active, region.buffer, region.mins, region.extents)
        self._check_together(call)
        rejected: list[tuple[str, str]] = []
        for variant in self._candidates(call):
            reason = self._unmet(variant, call)
            if reason is None:
                body = Block()
                call.b = Builder.at_end(body, op.location)
                try:
                    partition = variant.emit(call)
                except Decline as declined:
                    reason = str(declined)
                    for made in reversed(list(body)):
                        made.drop_references()
                else:
                    self._splice(op, body, f"{call.words(short=True)}: {variant.name}, {partition}")
                    self.choices.append(
                        Choice(
                            call.words(),
                            call.row.name,
                            call.scope,
                            variant.name,
                            partition,
                            tuple(rejected),
                            op.location,
                        )
                    )
                    return
            rejected.append((f"{variant.name} ({variant.priority})", reason))
        raise DispatchFailed(
            f"no lowering takes {call.words()}",
            span=span_at(op.location),
            help=None if call.row.kind == "known" else advice(call),
            rejected=rejected,
        )

    def _check_together(self, call: CallContext) -> None:
        """InvalidTileProgram for an operand of which each thread of the scope is known to have its own."""
        most = min(call.threads, self.uniform.threads)
        for role, operand in call.operands.items():
            numbers = operand.mins if isinstance(operand, RegionInfo) else (operand.value,)
            for number in numbers:
                if isinstance(self.uniform.what(number), Known) and self.uniform.group(number) < most:
                    is_region = isinstance(operand, RegionInfo)
                    what = f"{operand} begins elsewhere in each thread" if is_region else "differs between threads"
                    raise InvalidTileProgram(
                        f"{role} {what}, and the threads of a {call.scope} do Tx.{call.scope}.{call.row.name} together",
                        span=span_at(call.op.location),
                        help=f"Tx.{call.row.name} at thread scope is each thread's own",
                    )

    @staticmethod
    def _check_inside(
        op: Operation, active: Active, buffer: BufferInfo, mins: Sequence[Value], extents: Sequence[int | None]
    ) -> None:
        """InvalidTileProgram for what lies outside its buffer: of ids more is known than while the text was read."""
        if active.mask is not None and not active.mask.any():
            return  # nobody gets here
        cause = region_outside(buffer, mins, extents)
        if cause is not None:
            raise InvalidTileProgram(cause, span=span_at(op.location))

    def _candidates(self, call: CallContext) -> Sequence[Variant]:
        known = variants_of(call.row.name)
        if call.forced is None:
            return known
        chosen = [variant for variant in known if variant.name in ALIASES.get(call.forced, (call.forced,))]
        if not chosen:
            names = [variant.name for variant in known]
            raise DispatchFailed(
                f"Tx.{call.row.name} has no variant '{call.forced}'",
                span=span_at(call.op.location),
                help=did_you_mean(call.forced, names) or f"it has {', '.join(names)}",
            )
        return chosen

    def _unmet(self, variant: Variant, call: CallContext) -> str | None:
        """Why a variant doesn't take a call: all that it lacks."""
        reasons: list[str] = []
        for predicate in variant.predicates:
            try:
                reason = predicate.check(call)
            except Decline as declined:
                reason = str(declined)
            if reason is not None:
                reasons.append(f"{predicate.words}: {reason}")
        return "; ".join(reasons) or None

    def _splice(self, op: Operation, body: Block, comment: str) -> None:
        found = list(body)
        marked = next((made for made in found if made.regions), None) or next(
            (made for made in found if not is_pure(made)), None
        )
        if marked is not None:
            marked.attributes["tile.comment"] = at.string(comment)
        before = Builder.before(op)
        for made in found:
            made.unlink()
            before.insert(made)
        op.erase()


def _check_whole_warps(op: Operation, active: Active) -> None:
    """InvalidTileProgram for a barrier of a warp that only a part of one is known to reach: the rest is waited for."""
    if active.mask is None:
        return
    for first in range(0, active.mask.size, WARP):
        warp = active.mask[first : first + WARP]
        if warp.any() and not warp.all():
            raise InvalidTileProgram(
                f"{int(warp.sum())} of the {warp.size} lanes of warp {first // WARP} reach this barrier, which waits "
                "for all of them",
                span=span_at(op.location),
                help="put it after the branch, or where whole warps go the same way",
            )


def dispatch(kernel: Kernel, device: Device) -> Dispatched:
    """Lower every primitive of a kernel for a device.  Raises DispatchFailed, and InvalidTileProgram."""
    module = kernel.module.clone()
    function = func.entry(module)
    _check_launch(kernel, device)
    wide = _describe(function, kernel, device)
    ids = Ids(function, kernel.launch)
    storage = Storage(module, function, ids)
    storage.build()
    _check_shared(storage, device)
    bits = 64 if wide else 32
    launch = Launch(kernel.launch.grid, kernel.launch.block, 0, 0, bits, dynamic_shared=storage.dynamic_bytes)
    launch.write(function, on_gpu=True)
    walk = _Walk(kernel, device, storage, Uniformity(function, kernel.launch.block))
    walk.block(function.body, everyone(kernel.launch.threads))
    finish(module, function, storage)
    known = func.arg_attributes(function)
    arguments = [_argument(info, attributes) for info, attributes in zip(kernel.parameters, known, strict=True)]
    launch = replace(launch, shared_bytes=storage.shared_bytes)
    origin = Dispatch(kernel, tuple(walk.choices))
    return LaunchableKernel(function.str_attr("sym_name"), module, tuple(arguments), launch, origin, "buffers")


def _argument(info: ParameterInfo, attributes: Mapping[str, at.Attribute]) -> Argument:
    """A scalar has no dims; of a buffer of symbolic size nobody knows how many elements it has (-1)."""
    dtype = from_numpy(info.type.numpy)
    if info.shape is None:
        return Argument(info.name, dtype, (), (), is_output=False)
    held = attributes.get("llvm.dereferenceable")
    elements = held.value // info.type.bytes if isinstance(held, at.IntegerAttr) else -1
    return Argument(info.name, dtype, (elements,), (0,), is_output="xla.invariant" not in attributes)


def _check_shared(storage: Storage, device: Device) -> None:
    """InvalidTileProgram, at the largest allocation, for more shared memory than a block can have."""
    span = span_at(storage.largest[1].location) if storage.largest is not None else None
    if storage.shared_bytes > device.shared_per_block_optin:
        raise InvalidTileProgram(
            f"the kernel takes {storage.shared_bytes} bytes of shared memory; {device.title} has "
            f"{device.shared_per_block_optin} for a block",
            span=span,
            help="keep fewer stages or smaller tiles in it",
        )
    static = storage.shared_bytes - storage.dynamic_bytes
    if static > device.shared_per_block:
        raise InvalidTileProgram(
            f"the kernel declares {static} bytes of shared memory; a kernel can declare {device.shared_per_block}, "
            "more is given at launch",
            span=span,
            help=f'allocate it with scope="shared.dyn": up to {device.shared_per_block_optin} bytes on {device.title}',
        )


def _check_launch(kernel: Kernel, device: Device) -> None:
    for axis, extent, limit in zip("xyz", kernel.launch.grid, device.grid_limits, strict=True):
        if extent > limit:
            raise InvalidTileProgram(f"the grid has {extent} blocks along {axis}; {device.title} takes {limit}")
    for axis, extent, limit in zip("xyz", kernel.launch.block, device.block_limits, strict=True):
        if extent > limit:
            raise InvalidTileProgram(f"a block has {extent} threads along {axis}; {device.title} takes {limit}")


def _describe(function: Operation, kernel: Kernel, device: Device) -> bool:
    """Write the kernel's context on the function, and what is known of its arguments; whether a buffer is so large that
    its indices are."""
    arguments: list[dict[str, at.Attribute]] = []
    wide = False
    known = func.arg_attributes(function)
    for number, (info, attributes) in enumerate(zip(kernel.parameters, known, strict=True)):
        if info.shape is not None:
            attributes["xla.slice_index"] = at.integer_attr(number)
            attributes["llvm.align"] = at.integer_attr(max(info.alignment, info.type.bytes))
            argument = function.body.args[number]
            if not _is_written(argument):
                attributes["xla.invariant"] = at.UNIT
            assert isinstance(argument.type, MemRefType)
            elements = argument.type.shape[0]
            wide = wide or elements < 0 or elements * info.type.bytes >= 1 << 31
            if elements > 0:
                attributes["llvm.dereferenceable"] = at.integer_attr(elements * info.type.bytes)
        arguments.append(attributes)
    func.set_arg_attributes(function, arguments)
    function.attributes.update(
        {
            "warpsmith.target": at.string(device.name),
            "warpsmith.numerics": at.string("strict"),
            "warpsmith.emitter": at.string("tile"),
        }
    )
    if "launch_bounds_min_blocks_per_sm" in kernel.options:
        function.attributes["warpsmith.min_blocks"] = at.integer_attr(
            kernel.options["launch_bounds_min_blocks_per_sm"], at.I64
        )
    return wide


def _is_written(argument: Value) -> bool:
    """Whether a parameter's memory may be written: it is a destination, by itself or through a view."""
    stack = list(argument.users)
    while stack:
        op = stack.pop()
        if op.name in ("tile.match_buffer", "tile.view", "tile.region"):
            stack.extend(op.results[0].users)
            for user in op.results[0].users:
                if tile.is_primitive(user) and user.operands[0] is op.results[0]:
                    return True
                if user.name == "tile.store" and user.operands[1] is op.results[0]:
                    return True
    return False
