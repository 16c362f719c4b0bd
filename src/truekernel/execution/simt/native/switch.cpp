// Moving the processor from one device thread to another: only what the System V ABI asks a callee to keep.
#include "switch.h"

// void tk_switch(void **save, void *to)
asm(R"(
.text
.p2align 4
.globl tk_switch
.hidden tk_switch
.type tk_switch,@function
tk_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tk_switch,.-tk_switch
)");

// Where the timer's signal handler sends a spinning thread: the handler has pushed the interrupted address below the red zone of
// 128 bytes. Every register is kept, another thread runs, and `ret $128` goes back as if nothing had happened.
asm(R"(
.text
.p2align 4
.globl tk_preempt_entry
.hidden tk_preempt_entry
.type tk_preempt_entry,@function
tk_preempt_entry:
  pushfq
  pushq %rax
  pushq %rcx
  pushq %rdx
  pushq %rbx
  pushq %rbp
  pushq %rsi
  pushq %rdi
  pushq %r8
  pushq %r9
  pushq %r10
  pushq %r11
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,%rbp
  subq $1088,%rsp
  andq $-64,%rsp
  xorl %eax,%eax
  leaq 512(%rsp),%rdi
  movl $8,%ecx
  cld
  rep stosq
  movl $7,%eax
  xorl %edx,%edx
  xsave64 (%rsp)
  call tk_preempted
  movl $7,%eax
  xorl %edx,%edx
  xrstor64 (%rsp)
  movq %rbp,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %r11
  popq %r10
  popq %r9
  popq %r8
  popq %rdi
  popq %rsi
  popq %rbp
  popq %rbx
  popq %rdx
  popq %rcx
  popq %rax
  popfq
  ret $128
.size tk_preempt_entry,.-tk_preempt_entry
)");

namespace tk {

void *fresh_stack(char *high, void (*entry)()) {
  auto top = reinterpret_cast<uint64_t *>(reinterpret_cast<uintptr_t>(high) & ~uintptr_t(15));
  *--top = 0;  // what `entry` would return to
  *--top = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < 6; ++i) *--top = 0;
  return top;
}

}  // namespace tk
