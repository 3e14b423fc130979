#include "textflag.h"

// func clone(flags uintptr, steps *syscallStep, status *childStatus) (pid, errno uintptr)
//
// The parent returns. The child performs the steps, on the parent's stack but
// without touching it. The kernel clears status.sharing when the child has left our
// memory, be it for a program or for good.
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ	flags+0(FP), DI
	MOVQ	steps+8(FP), R12
	MOVQ	status+16(FP), R13
	XORL	SI, SI
	XORL	DX, DX
	MOVQ	R13, R10 // &status.sharing
	XORL	R8, R8
	MOVL	$56, AX // SYS_clone
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	CMPQ	AX, $0xfffffffffffff001
	JHI	failed
	MOVQ	AX, pid+24(FP)
	MOVQ	$0, errno+32(FP)
	RET
failed:
	NEGQ	AX
	MOVQ	$0, pid+24(FP)
	MOVQ	AX, errno+32(FP)
	RET

child:
	MOVQ	0(R12), AX
	MOVQ	8(R12), DI
	MOVQ	16(R12), SI
	MOVQ	24(R12), DX
	MOVQ	32(R12), R10
	MOVQ	40(R12), R8
	MOVQ	48(R12), R9
	SYSCALL
	CMPQ	AX, $0xfffffffffffff001
	JLS	next
	MOVQ	56(R12), CX // stage
	TESTQ	CX, CX
	JEQ	next // does not matter
	NEGQ	AX
	MOVL	CX, 4(R13) // status.stage
	MOVL	AX, 8(R13) // status.errno
exit:
	MOVL	$253, DI
	MOVL	$231, AX // SYS_exit_group
	SYSCALL
	JMP	exit
next:
	ADDQ	$64, R12
	JMP	child
