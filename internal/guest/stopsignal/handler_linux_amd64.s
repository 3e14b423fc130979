#include "textflag.h"

// Called by the kernel as handler(signal, *siginfo, *context), on the signal
// stack of whichever thread it chose. It may use nothing but registers.
TEXT ·handler(SB), NOSPLIT|NOFRAME, $0-0
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

// Where the handler returns to.
TEXT ·restorer(SB), NOSPLIT|NOFRAME, $0-0
	MOVL	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	LEAQ	·handler(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	LEAQ	·restorer(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
