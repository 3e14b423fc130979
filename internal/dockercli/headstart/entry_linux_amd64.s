#include "textflag.h"

#define SYS_arch_prctl 158
#define ARCH_SET_FS 0x1002

// Entry is where the kernel begins. Go code finds its goroutine through the
// thread's own memory, eight bytes below FS: it is given one whose stack has no
// end. The runtime, which begins on the stack as the kernel left it, sets FS anew.
TEXT ·Entry(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, BX
	SUBQ	$32, SP
	ANDQ	$~15, SP
	MOVQ	BX, 16(SP)
	LEAQ	·nobody(SB), CX
	MOVQ	CX, ·thread(SB)
	MOVQ	$SYS_arch_prctl, AX
	MOVQ	$ARCH_SET_FS, DI
	LEAQ	·thread+8(SB), SI
	SYSCALL
	MOVQ	BX, 0(SP)
	CALL	·begin(SB)
	MOVQ	16(SP), SP
	JMP	_rt0_amd64_linux(SB)
