#include "go_asm.h"
#include "textflag.h"

// What a byte is, is looked up by each of its halves: the class is what both
// tables say. 1: a control character. 2 " /, 4 \, 8 b f n, 16 r t: what a
// backslash may stand before. Bytes beyond ASCII have none.
DATA low<>+0(SB)/8, $0x01090111011b0101
DATA low<>+8(SB)/8, $0x0309010501010101
DATA low<>+16(SB)/8, $0x01090111011b0101
DATA low<>+24(SB)/8, $0x0309010501010101
GLOBL low<>(SB), RODATA|NOPTR, $32

DATA high<>+0(SB)/8, $0x1008040000020101
DATA high<>+8(SB)/8, $0
DATA high<>+16(SB)/8, $0x1008040000020101
DATA high<>+24(SB)/8, $0
GLOBL high<>(SB), RODATA|NOPTR, $32

#define EVERY(name, byte8) \
	DATA name<>+0(SB)/8, byte8  \
	DATA name<>+8(SB)/8, byte8  \
	DATA name<>+16(SB)/8, byte8 \
	DATA name<>+24(SB)/8, byte8 \
	GLOBL name<>(SB), RODATA|NOPTR, $32

EVERY(half, $0x0f0f0f0f0f0f0f0f)
EVERY(one, $0x0101010101010101)
EVERY(quote, $0x2222222222222222)
EVERY(slash, $0x5c5c5c5c5c5c5c5c)

#define ALTERNATE $0xaaaaaaaaaaaaaaaa

// LOOK looks at the 32 bytes in data and puts a bit for each into the four.
#define LOOK(data, quotes, slashes, simple, odd) \
	VPSRLW $4, data, Y2             \
	VPAND half<>(SB), Y2, Y2        \
	VPSHUFB Y2, Y4, Y2              \ // by the upper half
	VPSHUFB data, Y3, Y6            \ // by the lower half; 0 beyond ASCII
	VPAND Y2, Y6, Y2                \
	VPCMPEQB Y5, Y2, Y6             \ // control characters,
	VPOR data, Y6, Y6               \ // and whatever has the highest bit
	VPMOVMSKB Y6, odd               \
	VPCMPGTB Y5, Y2, Y2             \ // above 1
	VPMOVMSKB Y2, simple            \
	VPCMPEQB quote<>(SB), data, Y6  \
	VPMOVMSKB Y6, quotes            \
	VPCMPEQB slash<>(SB), data, Y6  \
	VPMOVMSKB Y6, slashes

// func pass(in *byte, blocks int, s *stop) (passed int)
TEXT ·pass(SB), NOSPLIT, $0-32
	MOVQ in+0(FP), AX
	MOVQ blocks+8(FP), SI
	XORQ R12, R12           // 1: the block before ends with the first half of an escape
	MOVQ ALTERNATE, R13
	VMOVDQU low<>(SB), Y3
	VMOVDQU high<>(SB), Y4
	VMOVDQU one<>(SB), Y5

next:
	XORQ BX, BX             // what is wrong in this block
	XORQ DX, DX
	TESTQ SI, SI
	JZ   done
	VMOVDQU 0(AX), Y0
	VMOVDQU 32(AX), Y1
	LOOK(Y0, R8, R9, R10, R11)
	LOOK(Y1, BX, CX, DX, DI)
	SHLQ $32, BX
	SHLQ $32, CX
	SHLQ $32, DX
	SHLQ $32, DI
	ORQ R8, BX              // quotes
	ORQ R9, CX              // backslashes
	ORQ R10, DX             // what one may stand before
	ORQ R11, DI             // what is odd

	// Which backslashes begin an escape, and what they stand before. The
	// subtraction runs through each row of backslashes at once: it turns the
	// bits over that alternate along the row, and one behind a row of odd
	// length.
	MOVQ R12, R8
	NOTQ R8
	ANDQ CX, R8             // those that are not escaped by the block before
	LEAQ (R8)(R8*1), R9
	ORQ  R13, R9
	SUBQ R8, R9
	XORQ R13, R9            // those that begin an escape, and what is escaped
	MOVQ CX, R10
	ORQ  R12, R10
	XORQ R9, R10            // what is escaped
	ANDQ CX, R9             // those that begin an escape

	// Stop at quotes and odd bytes that are not escaped, and at what is escaped
	// and may not be.
	NOTQ DX
	ANDQ R10, DX
	ORQ  DI, BX
	NOTQ R10
	ANDQ R10, BX
	ORQ  DX, BX
	JNZ  done
	SHRQ $63, R9
	MOVQ R9, R12
	ADDQ $64, AX
	DECQ SI
	JMP  next

done:
	VZEROUPPER
	MOVQ s+16(FP), DI
	MOVQ BX, stop_at(DI)
	MOVQ DX, stop_wrong(DI)
	MOVQ R12, stop_carry(DI)
	SUBQ in+0(FP), AX
	MOVQ AX, passed+24(FP)
	RET
