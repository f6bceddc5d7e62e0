"""The thread pool's native half, as LLVM IR text: what workers and callers do between two kernels.

Native, because the wait and the hand-out of work take well under a microsecond here, and 20 to 50 through Python's
own locks.  The functions, all of the C calling convention:

    pool_init(state)                         make the mutex and the condition variables
    pool_start(state, n) -> i64              start n detached workers; how many did start
    pool_stop(state)                         tell the workers to leave
    pool_launch(state, fn, argv, total, grain)   run fn(argv, b, e) over [0, total), `grain` workgroups at a time

One job runs at a time.  `pool_launch` takes the pool with a compare-and-exchange; a caller that finds it taken
(another Python thread is in it), or whose job is one grain, or whose `state` is null, runs its job alone: no caller
ever waits for another.  No kernel is called with an empty range.  The caller works too, and then closes the job and
waits until no worker is inside.

    caller                                     worker
    write the job; next = 0                    see a new generation (spin, then sleep)
    open = 1; generation += 1; wake sleepers   inside += 1; if open: take grains from next, run them
    take grains from next, run them            inside -= 1; if that was the last and the caller sleeps: wake it
    open = 0; wait for inside == 0

Each of the three hand-shakes (generation/sleepers, open/inside, inside/waits) is a store and then a load of the other
side's word on both sides, all sequentially consistent, so one of the two sides always sees the other.

Workers spin for some tens of microseconds after a job, for the next kernel of a plan, and then sleep on the condition
variable: an idle pool takes no time.  Kernels run with the default floating-point environment (round to nearest, no
flush to zero), whatever the caller's thread or a library has set; it is put back afterwards.
"""

from __future__ import annotations

__all__ = ["STATE_BYTES", "pool_ir"]

STATE_BYTES = 1024
"""Size of the shared state: one field, or one group that is written together, a cache line."""

_FIELDS = {
    "generation": 0,
    "sleepers": 8,
    "stop": 16,
    "busy": 128,
    "next": 256,
    "inside": 384,
    "fn": 512,
    "argv": 520,
    "total": 528,
    "grain": 536,
    "open": 544,
    "waits": 552,
    "mutex": 640,
    "work": 768,
    "done": 896,
}

_WORKER_SPINS = 3000  # 30 to 130 us, by what a pause takes
_CALLER_SPINS = 20000

_X86 = {
    "decl": """declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
@default_environment = private constant i32 8064""",
    "pause": "call void @llvm.x86.sse2.pause()",
    "save": "%saved = alloca i32\n  call void @llvm.x86.sse.stmxcsr(ptr %saved)",
    "set": "call void @llvm.x86.sse.ldmxcsr(ptr @default_environment)",
    "restore": "call void @llvm.x86.sse.ldmxcsr(ptr %saved)",
}
_AARCH64 = {
    "decl": """declare void @llvm.aarch64.hint(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)""",
    "pause": "call void @llvm.aarch64.hint(i32 1)",
    "save": "%saved = call i64 @llvm.aarch64.get.fpcr()",
    "set": "call void @llvm.aarch64.set.fpcr(i64 0)",
    "restore": "call void @llvm.aarch64.set.fpcr(i64 %saved)",
}
_OTHER = dict.fromkeys(("decl", "pause", "save", "set", "restore"), "")

_TEXT = """
{decl}
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)

define void @pool_init(ptr %s) {{
  %mutex = getelementptr i8, ptr %s, i64 {mutex}
  %work = getelementptr i8, ptr %s, i64 {work}
  %done = getelementptr i8, ptr %s, i64 {done}
  call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  call i32 @pthread_cond_init(ptr %work, ptr null)
  call i32 @pthread_cond_init(ptr %done, ptr null)
  ret void
}}

define i64 @pool_start(ptr %s, i64 %n) {{
entry:
  %thread = alloca ptr
  br label %test
test:
  %i = phi i64 [0, %entry], [%i1, %made]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %make, label %exit
make:
  %r = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %s)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %made, label %exit
made:
  %id = load ptr, ptr %thread
  call i32 @pthread_detach(ptr %id)
  %i1 = add i64 %i, 1
  br label %test
exit:
  %count = phi i64 [%i, %test], [%i, %make]
  ret i64 %count
}}

define void @pool_stop(ptr %s) {{
  %stop = getelementptr i8, ptr %s, i64 {stop}
  %mutex = getelementptr i8, ptr %s, i64 {mutex}
  %work = getelementptr i8, ptr %s, i64 {work}
  call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %stop seq_cst, align 8
  call i32 @pthread_cond_broadcast(ptr %work)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

; take grains of the open job until none is left
define internal void @drain(ptr %s) {{
entry:
  %next = getelementptr i8, ptr %s, i64 {next}
  %fn.p = getelementptr i8, ptr %s, i64 {fn}
  %argv.p = getelementptr i8, ptr %s, i64 {argv}
  %total.p = getelementptr i8, ptr %s, i64 {total}
  %grain.p = getelementptr i8, ptr %s, i64 {grain}
  %fn = load ptr, ptr %fn.p
  %argv = load ptr, ptr %argv.p
  %total = load i64, ptr %total.p
  %grain = load i64, ptr %grain.p
  br label %take
take:
  %b = atomicrmw add ptr %next, i64 %grain monotonic
  %some = icmp slt i64 %b, %total
  br i1 %some, label %run, label %exit
run:
  %e0 = add i64 %b, %grain
  %over = icmp sgt i64 %e0, %total
  %e = select i1 %over, i64 %total, i64 %e0
  call void %fn(ptr %argv, i64 %b, i64 %e)
  br label %take
exit:
  ret void
}}

define internal ptr @worker(ptr %s) {{
entry:
  %generation = getelementptr i8, ptr %s, i64 {generation}
  %sleepers = getelementptr i8, ptr %s, i64 {sleepers}
  %stop = getelementptr i8, ptr %s, i64 {stop}
  %inside = getelementptr i8, ptr %s, i64 {inside}
  %open = getelementptr i8, ptr %s, i64 {open}
  %waits = getelementptr i8, ptr %s, i64 {waits}
  %mutex = getelementptr i8, ptr %s, i64 {mutex}
  %work = getelementptr i8, ptr %s, i64 {work}
  %done = getelementptr i8, ptr %s, i64 {done}
  {set}
  br label %look
look:
  %seen = phi i64 [0, %entry], [%now, %next.job]
  br label %spin
spin:
  %i = phi i64 [0, %look], [%i1, %pause]
  %g = load atomic i64, ptr %generation acquire, align 8
  %new = icmp ne i64 %g, %seen
  br i1 %new, label %job, label %again
again:
  %i1 = add i64 %i, 1
  %tired = icmp eq i64 %i1, {worker_spins}
  br i1 %tired, label %sleep, label %pause
pause:
  {pause}
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr %mutex)
  atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %sleep.test
sleep.test:
  %g2 = load atomic i64, ptr %generation seq_cst, align 8
  %st = load atomic i64, ptr %stop seq_cst, align 8
  %same = icmp eq i64 %g2, %seen
  %stay = icmp eq i64 %st, 0
  %wait = and i1 %same, %stay
  br i1 %wait, label %sleep.wait, label %woken
sleep.wait:
  call i32 @pthread_cond_wait(ptr %work, ptr %mutex)
  br label %sleep.test
woken:
  atomicrmw sub ptr %sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br i1 %stay, label %job, label %leave
leave:
  ret ptr null
job:
  %now = load atomic i64, ptr %generation acquire, align 8
  atomicrmw add ptr %inside, i64 1 seq_cst
  %o = load atomic i64, ptr %open seq_cst, align 8
  %is.open = icmp ne i64 %o, 0
  br i1 %is.open, label %help, label %out
help:
  call void @drain(ptr %s)
  br label %out
out:
  %before = atomicrmw sub ptr %inside, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  %w = load atomic i64, ptr %waits seq_cst, align 8
  %asleep = icmp ne i64 %w, 0
  %call = and i1 %last, %asleep
  br i1 %call, label %wake, label %next.job
wake:
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_signal(ptr %done)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %next.job
next.job:
  br label %look
}}

define internal void @share(ptr %s, ptr %fn, ptr %argv, i64 %total, i64 %grain) {{
entry:
  %generation = getelementptr i8, ptr %s, i64 {generation}
  %sleepers = getelementptr i8, ptr %s, i64 {sleepers}
  %inside = getelementptr i8, ptr %s, i64 {inside}
  %next = getelementptr i8, ptr %s, i64 {next}
  %open = getelementptr i8, ptr %s, i64 {open}
  %waits = getelementptr i8, ptr %s, i64 {waits}
  %mutex = getelementptr i8, ptr %s, i64 {mutex}
  %work = getelementptr i8, ptr %s, i64 {work}
  %done = getelementptr i8, ptr %s, i64 {done}
  %fn.p = getelementptr i8, ptr %s, i64 {fn}
  %argv.p = getelementptr i8, ptr %s, i64 {argv}
  %total.p = getelementptr i8, ptr %s, i64 {total}
  %grain.p = getelementptr i8, ptr %s, i64 {grain}
  store ptr %fn, ptr %fn.p
  store ptr %argv, ptr %argv.p
  store i64 %total, ptr %total.p
  store i64 %grain, ptr %grain.p
  store atomic i64 0, ptr %next seq_cst, align 8
  store atomic i64 1, ptr %open seq_cst, align 8
  atomicrmw add ptr %generation, i64 1 seq_cst
  %sl = load atomic i64, ptr %sleepers seq_cst, align 8
  %any = icmp ne i64 %sl, 0
  br i1 %any, label %wake, label %begin
wake:
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_broadcast(ptr %work)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %begin
begin:
  call void @drain(ptr %s)
  store atomic i64 0, ptr %open seq_cst, align 8
  br label %spin
spin:
  %i = phi i64 [0, %begin], [%i1, %pause]
  %in = load atomic i64, ptr %inside seq_cst, align 8
  %empty = icmp eq i64 %in, 0
  br i1 %empty, label %exit, label %again
again:
  %i1 = add i64 %i, 1
  %tired = icmp eq i64 %i1, {caller_spins}
  br i1 %tired, label %sleep, label %pause
pause:
  {pause}
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %waits seq_cst, align 8
  br label %sleep.test
sleep.test:
  %in2 = load atomic i64, ptr %inside seq_cst, align 8
  %empty2 = icmp eq i64 %in2, 0
  br i1 %empty2, label %woken, label %sleep.wait
sleep.wait:
  call i32 @pthread_cond_wait(ptr %done, ptr %mutex)
  br label %sleep.test
woken:
  store atomic i64 0, ptr %waits seq_cst, align 8
  call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %exit
exit:
  ret void
}}

define internal void @launch(ptr %s, ptr %fn, ptr %argv, i64 %total, i64 %grain) {{
entry:
  %work = icmp sgt i64 %total, 0
  br i1 %work, label %some, label %nothing
nothing:
  ret void
some:
  %busy = getelementptr i8, ptr %s, i64 {busy}
  %none = icmp eq ptr %s, null
  %small = icmp sle i64 %total, %grain
  %alone0 = or i1 %none, %small
  br i1 %alone0, label %alone, label %try
try:
  %x = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %got = extractvalue {{i64, i1}} %x, 1
  br i1 %got, label %together, label %alone
alone:
  call void %fn(ptr %argv, i64 0, i64 %total)
  ret void
together:
  call void @share(ptr %s, ptr %fn, ptr %argv, i64 %total, i64 %grain)
  store atomic i64 0, ptr %busy release, align 8
  ret void
}}

define void @pool_launch(ptr %s, ptr %fn, ptr %argv, i64 %total, i64 %grain) {{
  {save}
  {set}
  call void @launch(ptr %s, ptr %fn, ptr %argv, i64 %total, i64 %grain)
  {restore}
  ret void
}}
"""


def pool_ir(triple: str) -> str:
    """The module for `triple`.  Needs POSIX threads in the process."""
    head = triple.partition("-")[0]
    machine = _X86 if head in ("x86_64", "i686", "amd64") else _AARCH64 if head in ("aarch64", "arm64") else _OTHER
    return _TEXT.format(**_FIELDS, **machine, worker_spins=_WORKER_SPINS, caller_spins=_CALLER_SPINS)
