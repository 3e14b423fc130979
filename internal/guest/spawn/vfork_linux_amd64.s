#include "textflag.h"

// func vfork(flags uintptr) (pid, errno uintptr)
//
// Parent and child come back on the same stack, the child first. What the
// child pushes there would overwrite our return address before the parent uses
// it, so it waits in a register, of which each of the two has its own.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ	flags+0(FP), DI
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$56, AX // SYS_clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JLS	done
	NEGQ	AX
	MOVQ	$0, pid+8(FP)
	MOVQ	AX, errno+16(FP)
	RET
done:
	MOVQ	AX, pid+8(FP)
	MOVQ	$0, errno+16(FP)
	RET
