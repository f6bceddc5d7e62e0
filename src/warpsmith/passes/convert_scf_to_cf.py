"""convert-scf-to-cf: structured loops and branches become blocks and branches.

    scf.for %i = %lo to %hi step %s iter_args(%a = %x) { ... scf.yield %b }
      ->  cf.br ^head(%lo, %x)
          ^head(%i, %a): %more = arith.cmpi slt, %i, %hi ; cf.cond_br %more, ^body, ^exit
          ^body: ... ; %next = arith.addi %i, %s ; cf.br ^head(%next, %b)

Inner structures are rewritten first.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Region, Value
from warpsmith.ir.dialects import arith, func, scf

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("scf.*",)


def run(module: Operation) -> None:
    """Rewrite all functions of the module."""
    for op in func.functions(module):
        for nested in list(op.walk_post()):
            lower = _TABLE.get(nested.name)
            if lower is not None:
                lower(nested)


def _region_of(block: Block) -> Region:
    assert block.region is not None
    return block.region


def _split_after(op: Operation) -> Block:
    """Move what follows `op` to a new block, placed right after `op`'s."""
    block = op.block
    assert block is not None
    rest = Block()
    region = _region_of(block)
    region.blocks.insert(region.blocks.index(block) + 1, rest)
    rest.region = region
    following = op.next
    if following is not None:
        # Relink the whole tail at once.
        rest.first, rest.last = following, block.last
        following.prev = None
        block.last = op
        op.next = None
        moved: Operation | None = following
        while moved is not None:
            moved.block = rest
            moved = moved.next
    return rest


def _splice(blocks: list[Block], before: Block) -> None:
    """Put a nested region's blocks into the region of `before`, just ahead of it."""
    region = _region_of(before)
    at = region.blocks.index(before)
    region.blocks[at:at] = blocks
    for block in blocks:
        block.region = region


def _finish(op: Operation, exit_block: Block, values: list[Value] | None = None) -> None:
    """Replace the results of `op` by the exit block's new arguments (or by `values`) and erase it."""
    if values is None:
        values = [exit_block.add_arg(r.type, r.name) for r in op.results]
    for result, value in zip(op.results, values, strict=True):
        result.replace_by(value)
    op.regions = []
    op.erase()


def _for(op: Operation) -> None:
    lower, upper, step, *inits = op.operands
    before = op.block
    assert before is not None
    exit_block = _split_after(op)
    body_blocks = op.regions[0].blocks
    body = body_blocks[0]
    head = Block([a.type for a in body.args], [a.name for a in body.args])
    _splice([head, *body_blocks], exit_block)
    for old, new in zip(list(body.args), head.args, strict=True):
        old.replace_by(new)
    body.args = []
    last = body_blocks[-1].terminator
    b = Builder.before(last)
    following = arith.binary(b, "addi", head.args[0], step)
    scf.br(b, head, [following, *last.operands])
    last.erase()
    b = Builder.at_end(head, op.location)
    scf.cond_br(b, arith.cmpi(b, "slt", head.args[0], upper), body, (), exit_block, ())
    scf.br(Builder.before(op), head, [lower, *inits])
    _finish(op, exit_block, list(head.args[1:]))


def _if(op: Operation) -> None:
    before = op.block
    assert before is not None
    exit_block = _split_after(op)
    targets: list[Block] = []
    for region in op.regions:
        if not region.blocks:
            targets.append(exit_block)
            continue
        targets.append(region.blocks[0])
        last = region.blocks[-1].terminator
        scf.br(Builder.before(last), exit_block, last.operands)
        last.erase()
        _splice(list(region.blocks), exit_block)
    scf.cond_br(Builder.before(op), op.operands[0], targets[0], (), targets[1], ())
    _finish(op, exit_block)


def _while(op: Operation) -> None:
    exit_block = _split_after(op)
    before_blocks, after_blocks = op.regions[0].blocks, op.regions[1].blocks
    condition = before_blocks[-1].terminator
    scf.cond_br(
        Builder.before(condition),
        condition.operands[0],
        after_blocks[0],
        condition.operands[1:],
        exit_block,
        condition.operands[1:],
    )
    condition.erase()
    last = after_blocks[-1].terminator
    scf.br(Builder.before(last), before_blocks[0], last.operands)
    last.erase()
    scf.br(Builder.before(op), before_blocks[0], op.operands)
    _splice([*before_blocks, *after_blocks], exit_block)
    _finish(op, exit_block)


_TABLE: dict[str, Callable[[Operation], None]] = {"scf.for": _for, "scf.if": _if, "scf.while": _while}
