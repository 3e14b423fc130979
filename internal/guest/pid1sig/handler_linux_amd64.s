#include "textflag.h"

// Handlers are called by the kernel as handler(signal, *siginfo, *context), on
// the signal stack of whichever thread it chose. They may use nothing but
// registers.

TEXT ·discard(SB), NOSPLIT|NOFRAME, $0-0
	RET

TEXT ·stop(SB), NOSPLIT|NOFRAME, $0-0
	MOVL	8(SI), AX  // si_code: 0 is kill(2), and cannot be forged
	ORL	16(SI), AX // si_pid: 0 is outside
	JNZ	done
	MOVL	·notify(SB), DI
	LEAQ	·one(SB), SI
	MOVL	$8, DX
	MOVL	$1, AX // SYS_write
	SYSCALL
done:
	RET

// Where handlers return to.
TEXT ·restore(SB), NOSPLIT|NOFRAME, $0-0
	MOVL	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

// func discardPC() uintptr
TEXT ·discardPC(SB), NOSPLIT, $0-8
	LEAQ	·discard(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func stopPC() uintptr
TEXT ·stopPC(SB), NOSPLIT, $0-8
	LEAQ	·stop(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func restorePC() uintptr
TEXT ·restorePC(SB), NOSPLIT, $0-8
	LEAQ	·restore(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
