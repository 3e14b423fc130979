#include "textflag.h"

// func clone(flags uintptr, steps *syscallStep, status *childStatus) (pid, errno uintptr)
//
// See the amd64 version.
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-40
	MOVD	flags+0(FP), R0
	MOVD	steps+8(FP), R9
	MOVD	status+16(FP), R10
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	R10, R4 // &status.sharing
	MOVD	$220, R8 // SYS_clone
	SVC
	CBZ	R0, child
	CMN	$4095, R0
	BCS	failed
	MOVD	R0, pid+24(FP)
	MOVD	ZR, errno+32(FP)
	RET
failed:
	NEG	R0, R0
	MOVD	ZR, pid+24(FP)
	MOVD	R0, errno+32(FP)
	RET

child:
	MOVD	0(R9), R8
	MOVD	8(R9), R0
	MOVD	16(R9), R1
	MOVD	24(R9), R2
	MOVD	32(R9), R3
	MOVD	40(R9), R4
	MOVD	48(R9), R5
	SVC
	CMN	$4095, R0
	BCC	next
	MOVD	56(R9), R11 // stage
	CBZ	R11, next   // does not matter
	NEG	R0, R0
	MOVW	R11, 4(R10) // status.stage
	MOVW	R0, 8(R10)  // status.errno
exit:
	MOVD	$253, R0
	MOVD	$94, R8 // SYS_exit_group
	SVC
	B	exit
next:
	ADD	$64, R9, R9
	B	child
