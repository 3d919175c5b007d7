#include "go_asm.h"
#include "textflag.h"

// The loops of single.go for AVX2, which take two beads of a quad, a couple, and all their
// partners of a tile at once: the first bead is in the lower half of a register, the second
// in the upper one. Operations and their order are those of the Go code, lane by lane.

// EIGHT defines a number repeated eight times.
#define EIGHT(name, value) \
	DATA name<>+0(SB)/4, value  \
	DATA name<>+4(SB)/4, value  \
	DATA name<>+8(SB)/4, value  \
	DATA name<>+12(SB)/4, value \
	DATA name<>+16(SB)/4, value \
	DATA name<>+20(SB)/4, value \
	DATA name<>+24(SB)/4, value \
	DATA name<>+28(SB)/4, value \
	GLOBL name<>(SB), RODATA|NOPTR, $32

EIGHT(ones, $0x3F800000)
EIGHT(fine2, $0x26800000)         // 2^-50
EIGHT(ashbaughHatchReach2, $0x40800000)   // 4
EIGHT(ashbaughHatchStrength, $0x4120AA65) // ashbaughHatchScale
EIGHT(chargeReach2, $0x41800000)  // 16
EIGHT(debyeHueckelLeast2, $0x39800000)  // 2^-12
EIGHT(debyeHueckelMost2, $0x417FFFFF)   // just below 16
EIGHT(segmentHead, $0xFFFE0000)   // all bits of r² except those within a segment

// BITS are the bits of a tile that stand for the pairs of a couple.
#define BITS(name, b0, b1, b2, b3, b4, b5, b6, b7) \
	DATA name<>+0(SB)/4, b0  \
	DATA name<>+4(SB)/4, b1  \
	DATA name<>+8(SB)/4, b2  \
	DATA name<>+12(SB)/4, b3 \
	DATA name<>+16(SB)/4, b4 \
	DATA name<>+20(SB)/4, b5 \
	DATA name<>+24(SB)/4, b6 \
	DATA name<>+28(SB)/4, b7 \
	GLOBL name<>(SB), RODATA|NOPTR, $32

BITS(firstCouple, $0x10000, $0x20000, $0x40000, $0x80000, $0x100000, $0x200000, $0x400000, $0x800000)
BITS(secondCouple, $0x1000000, $0x2000000, $0x4000000, $0x8000000, $0x10000000, $0x20000000, $0x40000000, $0x80000000)

// MINE is the place on the stack of a field of a couple of the row's quad.
#define MINE(couple, field) (160*couple+32*field)(SP)

// SPREAD puts a field of both couples of the quad at SI there. It uses X0 and X1.
#define SPREAD(from, field) \
	VBROADCASTSS (from+0)(SI), X0           \
	VBROADCASTSS (from+4)(SI), X1           \
	VMOVUPS      X0, MINE(0, field)         \
	VMOVUPS      X1, 16+MINE(0, field)      \
	VBROADCASTSS (from+8)(SI), X0           \
	VBROADCASTSS (from+12)(SI), X1          \
	VMOVUPS      X0, MINE(1, field)         \
	VMOVUPS      X1, 16+MINE(1, field)

// BEGIN prepares for the tiles of the quad at SI: Y10 to Y15 are the sums that it loses.
#define BEGIN \
	SPREAD(quad32_x, 0)    \
	SPREAD(quad32_y, 1)    \
	SPREAD(quad32_z, 2)    \
	SPREAD(quad32_p, 3)    \
	SPREAD(quad32_q, 4)    \
	VXORPS Y10, Y10, Y10   \
	VXORPS Y11, Y11, Y11   \
	VXORPS Y12, Y12, Y12   \
	VXORPS Y13, Y13, Y13   \
	VXORPS Y14, Y14, Y14   \
	VXORPS Y15, Y15, Y15

// PARTNERS points BX to the quad of tile CX.
#define PARTNERS \
	MOVWLZX (R9)(CX*4), BX \
	SHLQ    $7, BX         \
	ADDQ    DI, BX

// DISTANCES sets Y0, Y1, Y2 to the separations from a couple, and Y3 to the squares of the
// distances. It uses Y4.
#define DISTANCES(couple) \
	VBROADCASTI128 quad32_x(BX), Y0      \
	VBROADCASTI128 quad32_y(BX), Y1      \
	VBROADCASTI128 quad32_z(BX), Y2      \
	VPSUBD         MINE(couple, 0), Y0, Y0 \
	VPSUBD         MINE(couple, 1), Y1, Y1 \
	VPSUBD         MINE(couple, 2), Y2, Y2 \
	VCVTDQ2PS      Y0, Y0                \
	VCVTDQ2PS      Y1, Y1                \
	VCVTDQ2PS      Y2, Y2                \
	VMULPS         Y0, Y0, Y3            \
	VMULPS         Y1, Y1, Y4            \
	VADDPS         Y4, Y3, Y3            \
	VMULPS         Y2, Y2, Y4            \
	VADDPS         Y4, Y3, Y3            \
	VMULPS         fine2<>(SB), Y3, Y3

// COUNT sets Y5 to masks of the pairs that count and whose r², in Y3, is below a square.
// It uses Y6.
#define COUNT(bits, reach2) \
	VPBROADCASTD (R9)(CX*4), Y6           \
	VPAND        bits<>(SB), Y6, Y6       \
	VPCMPEQD     bits<>(SB), Y6, Y6       \
	VCMPPS       $0x11, reach2<>(SB), Y3, Y5 \
	VANDPS       Y6, Y5, Y5

// STICK32 sets Y4 to the forces over the distances of a couple, and Y0, Y1, Y2 to the
// separations. It uses Y3, Y5 and Y6.
#define STICK32(couple, bits) \
	DISTANCES(couple)                                  \
	COUNT(bits, ashbaughHatchReach2)                           \
	VMOVUPS        ones<>(SB), Y4                      \
	VDIVPS         Y3, Y4, Y3                          \
	VANDPS         Y5, Y3, Y3               /* u, or 0 */ \
	VBROADCASTF128 quad32_p(BX), Y4                    \
	VADDPS         MINE(couple, 3), Y4, Y4               \
	VMULPS         Y4, Y4, Y4                          \
	VMULPS         Y3, Y4, Y4               /* b */    \
	VMULPS         Y4, Y4, Y5                          \
	VMULPS         Y4, Y5, Y4               /* a */    \
	VBROADCASTF128 quad32_q(BX), Y5                    \
	VADDPS         MINE(couple, 4), Y5, Y5               \
	VCMPPS         $0x1D, ones<>(SB), Y4, Y6 /* a >= 1 */ \
	VBLENDVPS      Y6, ashbaughHatchStrength<>(SB), Y5, Y5         \
	VMULPS         Y3, Y5, Y5                          \
	VMULPS         Y4, Y5, Y5                          \
	VSUBPS         ones<>(SB), Y4, Y4                  \
	VMULPS         Y5, Y4, Y4

// QUARTERS loads the coefficients of two lanes, half a register apart, whose offsets are on
// the stack. It uses R8 and R10.
#define QUARTERS(lane, to, half) \
	MOVL        (320+4*lane)(SP), R8                                                        \
	MOVL        (336+4*lane)(SP), R10                                                       \
	VMOVUPS     (debyeHueckelTable32_segment-const_firstSegment32*16)(R12)(R8*1), half            \
	VINSERTF128 $1, (debyeHueckelTable32_segment-const_firstSegment32*16)(R12)(R10*1), to, to

// SCREEN32 is STICK32 for Debye-Hückel forces. It uses Y3 and Y5 to Y9; the gains of the
// first couple are kept on the stack.
#define SCREEN32(couple, bits) \
	DISTANCES(couple)                               \
	COUNT(bits, chargeReach2)                       \
	VBROADCASTF128 quad32_q(BX), Y6                 \
	VMULPS         MINE(couple, 3), Y6, Y6            \
	VANDPS         Y5, Y6, Y6         /* product of charges, or 0 */ \
	VMOVUPS        Y6, 352(SP)                      \
	VMAXPS         debyeHueckelLeast2<>(SB), Y3, Y3       \
	VMINPS         debyeHueckelMost2<>(SB), Y3, Y3        \
	VPSRLD         $const_segmentShift32, Y3, Y4    \
	VPSLLD         $4, Y4, Y4                       \
	VMOVDQU        Y4, 320(SP)                      \
	VANDPS         segmentHead<>(SB), Y3, Y4        \
	VSUBPS         Y4, Y3, Y3         /* t */       \
	QUARTERS(0, Y4, X4)                             \
	QUARTERS(1, Y5, X5)                             \
	QUARTERS(2, Y6, X6)                             \
	QUARTERS(3, Y7, X7)                             \
	VUNPCKLPS      Y5, Y4, Y8         /* 0: a b, 1: a b */ \
	VUNPCKHPS      Y5, Y4, Y4         /* 2: a b, 3: a b */ \
	VUNPCKLPS      Y7, Y6, Y9         /* 0: c d, 1: c d */ \
	VUNPCKHPS      Y7, Y6, Y6                       \
	VUNPCKHPD      Y9, Y8, Y5         /* 1 */       \
	VUNPCKLPD      Y9, Y8, Y8         /* 0 */       \
	VUNPCKHPD      Y6, Y4, Y7         /* 3 */       \
	VUNPCKLPD      Y6, Y4, Y4         /* 2 */       \
	VMULPS         Y5, Y3, Y5                       \
	VADDPS         Y5, Y8, Y8                       \
	VMULPS         Y7, Y3, Y7                       \
	VADDPS         Y7, Y4, Y4                       \
	VMULPS         Y3, Y3, Y3                       \
	VMULPS         Y4, Y3, Y3                       \
	VADDPS         Y3, Y8, Y8                       \
	VMULPS         352(SP), Y8, Y4

// LOST multiplies the separations with Y4 and adds them to the sums.
#define LOST(SX, SY, SZ) \
	VMULPS Y4, Y0, Y0 \
	VMULPS Y4, Y1, Y1 \
	VMULPS Y4, Y2, Y2 \
	VADDPS Y0, SX, SX \
	VADDPS Y1, SY, SY \
	VADDPS Y2, SZ, SZ

// GAINED adds what the partners have gained, over both couples.
#define GAINED(gain, half, force) \
	VEXTRACTF128 $1, gain, X3   \
	VADDPS       X3, half, X3   \
	VADDPS       force(BX), X3, X3 \
	VMOVUPS      X3, force(BX)

// GAINS adds the separations times forces of the couples, in Y7, Y8, Y9 and Y0, Y1, Y2, to the
// forces on the partners. It uses X3.
#define GAINS \
	VADDPS Y0, Y7, Y0         \
	VADDPS Y1, Y8, Y1         \
	VADDPS Y2, Y9, Y2         \
	GAINED(Y0, X0, quad32_fx) \
	GAINED(Y1, X1, quad32_fy) \
	GAINED(Y2, X2, quad32_fz)

// END32 adds the sums of the couples up over lanes and subtracts them from the forces of the
// quad at SI, for one axis. It uses X0 and X1.
#define END32(first, second, force) \
	VHADDPS      second, first, Y0 \
	VHADDPS      Y0, Y0, Y0        \
	VEXTRACTF128 $1, Y0, X1        \
	VUNPCKLPS    X1, X0, X0        \
	VMOVUPS      force(SI), X1     \
	VSUBPS       X0, X1, X1        \
	VMOVUPS      X1, force(SI)

// END does so for the sums that BEGIN has cleared.
#define END \
	END32(Y10, Y13, quad32_fx) \
	END32(Y11, Y14, quad32_fy) \
	END32(Y12, Y15, quad32_fz)

// func avx2AshbaughHatch32(quads *quad32, start *int32, tiles *tile, rows int)
TEXT ·avx2AshbaughHatch32(SB), NOSPLIT, $320-32
	MOVQ    quads+0(FP), DI
	MOVQ    DI, SI
	MOVQ    start+8(FP), AX
	MOVQ    tiles+16(FP), R9
	MOVQ    rows+24(FP), R11
	MOVLQSX (AX), CX

ashbaughHatchRow:
	ADDQ    $4, AX
	MOVLQSX (AX), DX
	CMPQ    CX, DX
	JGE     ashbaughHatchNext
	BEGIN

ashbaughHatchTile:
	PARTNERS
	STICK32(0, firstCouple)
	LOST(Y10, Y11, Y12)
	VMOVAPS Y0, Y7
	VMOVAPS Y1, Y8
	VMOVAPS Y2, Y9
	STICK32(1, secondCouple)
	LOST(Y13, Y14, Y15)
	GAINS
	INCQ    CX
	CMPQ    CX, DX
	JLT     ashbaughHatchTile
	END

ashbaughHatchNext:
	ADDQ $quad32__size, SI
	DECQ R11
	JNZ  ashbaughHatchRow
	VZEROUPPER
	RET

// func avx2DebyeHueckel32(quads *quad32, start *int32, tiles *tile, rows int, table *debyeHueckelTable32)
TEXT ·avx2DebyeHueckel32(SB), NOSPLIT, $480-40
	MOVQ    quads+0(FP), DI
	MOVQ    DI, SI
	MOVQ    start+8(FP), AX
	MOVQ    tiles+16(FP), R9
	MOVQ    rows+24(FP), R11
	MOVQ    table+32(FP), R12
	MOVLQSX (AX), CX

debyeHueckelRow:
	ADDQ    $4, AX
	MOVLQSX (AX), DX
	CMPQ    CX, DX
	JGE     debyeHueckelNext
	BEGIN

debyeHueckelTile:
	PARTNERS
	SCREEN32(0, firstCouple)
	LOST(Y10, Y11, Y12)
	VMOVUPS Y0, 384(SP)
	VMOVUPS Y1, 416(SP)
	VMOVUPS Y2, 448(SP)
	SCREEN32(1, secondCouple)
	LOST(Y13, Y14, Y15)
	VMOVUPS 384(SP), Y7
	VMOVUPS 416(SP), Y8
	VMOVUPS 448(SP), Y9
	GAINS
	INCQ    CX
	CMPQ    CX, DX
	JLT     debyeHueckelTile
	END

debyeHueckelNext:
	ADDQ $quad32__size, SI
	DECQ R11
	JNZ  debyeHueckelRow
	VZEROUPPER
	RET

// func avx2Prune(quads *quad32, start *int32, tiles *tile, rows int, reach2 float32, toStart *int32, to *tile)
TEXT ·avx2Prune(SB), NOSPLIT, $320-56
	MOVQ         quads+0(FP), DI
	MOVQ         DI, SI
	MOVQ         start+8(FP), AX
	MOVQ         tiles+16(FP), R9
	MOVQ         rows+24(FP), R11
	VBROADCASTSS reach2+32(FP), Y7
	MOVQ         toStart+40(FP), R12
	MOVQ         to+48(FP), R13
	XORQ         R14, R14
	MOVL         R14, (R12)
	MOVLQSX      (AX), CX

pruneRow:
	ADDQ    $4, AX
	ADDQ    $4, R12
	MOVLQSX (AX), DX
	CMPQ    CX, DX
	JGE     pruneNext
	SPREAD(quad32_x, 0)
	SPREAD(quad32_y, 1)
	SPREAD(quad32_z, 2)

pruneTile:
	PARTNERS
	DISTANCES(0)
	VMOVAPS   Y3, Y5
	DISTANCES(1)
	VMINPS    Y5, Y3, Y3
	VCMPPS    $0x11, Y7, Y3, Y3
	VMOVMSKPS Y3, R8
	MOVL      (R9)(CX*4), R10
	MOVL      R10, (R13)(R14*4)
	CMPL      R8, $1
	SBBQ      $-1, R14
	INCQ      CX
	CMPQ      CX, DX
	JLT       pruneTile

pruneNext:
	MOVL R14, (R12)
	ADDQ $quad32__size, SI
	DECQ R11
	JNZ  pruneRow
	VZEROUPPER
	RET

// func avx2Touching(x, y, z, radius *float32, balls int, at *[3]float32, distance float32, first int32, to *int32) int
TEXT ·avx2Touching(SB), NOSPLIT, $0-72
	MOVQ         x+0(FP), AX
	MOVQ         y+8(FP), BX
	MOVQ         z+16(FP), DX
	MOVQ         radius+24(FP), SI
	MOVQ         balls+32(FP), CX
	MOVQ         at+40(FP), R8
	VBROADCASTSS (R8), Y0
	VBROADCASTSS 4(R8), Y1
	VBROADCASTSS 8(R8), Y2
	VBROADCASTSS distance+48(FP), Y3
	MOVL         first+52(FP), R9
	MOVQ         to+56(FP), DI
	MOVQ         DI, R10

eightBalls:
	VMOVUPS   (AX), Y4
	VMOVUPS   (BX), Y5
	VMOVUPS   (DX), Y6
	VADDPS    (SI), Y3, Y7
	VSUBPS    Y0, Y4, Y4
	VSUBPS    Y1, Y5, Y5
	VSUBPS    Y2, Y6, Y6
	VMULPS    Y4, Y4, Y4
	VMULPS    Y5, Y5, Y5
	VADDPS    Y5, Y4, Y4
	VMULPS    Y6, Y6, Y6
	VADDPS    Y6, Y4, Y4
	VMULPS    Y7, Y7, Y7
	VCMPPS    $0x11, Y7, Y4, Y4
	VMOVMSKPS Y4, R11
	CMPQ      CX, $8
	JGE       nextHit
	MOVL      $1, R12          // leave out what follows the run
	SHLL      CX, R12
	DECL      R12
	ANDL      R12, R11

nextHit:
	BSFL R11, R12
	JZ   noMoreHits
	ADDL R9, R12
	MOVL R12, (DI)
	ADDQ $4, DI
	LEAL -1(R11), R12
	ANDL R12, R11
	JMP  nextHit

noMoreHits:
	ADDQ $32, AX
	ADDQ $32, BX
	ADDQ $32, DX
	ADDQ $32, SI
	ADDL $8, R9
	SUBQ $8, CX
	JG   eightBalls
	SUBQ R10, DI
	SHRQ $2, DI
	MOVQ DI, ret+64(FP)
	VZEROUPPER
	RET
