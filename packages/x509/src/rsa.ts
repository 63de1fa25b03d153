import { EXPONENT_BITS, FERMAT_ROUNDS, LEAST_EXPONENT, LEAST_RSA_BITS } from './limits.js'

/** Why an RSA key is weak, or undefined. The size is checked first because it bounds the cost of the other checks. */
export function rsaWeakness(modulus: bigint, exponent: bigint, mostBits: number): string | undefined {
  const bits = bitsOf(modulus)
  if (bits < LEAST_RSA_BITS || bits > mostBits) return `must have ${LEAST_RSA_BITS} to ${mostBits} bits`
  if (exponent < LEAST_EXPONENT || exponent % 2n === 0n || bitsOf(exponent) > EXPONENT_BITS)
    return `must have an odd exponent of at least ${LEAST_EXPONENT} and at most ${EXPONENT_BITS} bits`
  if (hasSmallFactor(modulus)) return 'has a modulus with a small factor'
  if (hasCloseFactors(modulus)) return 'has a modulus whose factors are close to each other'
  return isOfRoca(modulus) ? 'has a modulus from a defective generator (CVE-2017-15361)' : undefined
}

const bitsOf = (value: bigint): number => value.toString(2).length

/** All primes below the limit, in order. */
function primesBelow(limit: number): readonly number[] {
  const isComposite = new Uint8Array(limit)
  const primes: number[] = []
  for (let candidate = 2; candidate < limit; candidate++) {
    if (isComposite[candidate]) continue
    primes.push(candidate)
    for (let multiple = candidate * candidate; multiple < limit; multiple += candidate)
      isComposite[multiple] = 1
  }
  return primes
}

const smallPrimes = primesBelow(10_000).map(BigInt)

const hasSmallFactor = (modulus: bigint): boolean => smallPrimes.some((prime) => modulus % prime === 0n)

/** Fermat's method: n = a² − b², where a is close to the root of n if the factors are close to each other. */
function hasCloseFactors(modulus: bigint): boolean {
  let a = rootOf(modulus)
  if (a * a < modulus) a += 1n
  let square = a * a - modulus
  for (let round = 0; round < FERMAT_ROUNDS; round++) {
    if (isSquare(square)) return true
    square += 2n * a + 1n
    a += 1n
  }
  return false
}

/** The square root, rounded down, by Newton's method. */
function rootOf(value: bigint): bigint {
  if (value < 2n) return value
  let root = 1n << BigInt(Math.ceil(bitsOf(value) / 2))
  for (;;) {
    const next = (root + value / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

/** The last bits exclude most numbers first: squares end in few patterns. */
function isSquare(value: bigint): boolean {
  if (!squaresOf256.has(Number(value & 255n))) return false
  const root = rootOf(value)
  return root * root === value
}
const squaresOf256 = new Set(Array.from({ length: 256 }, (_, i) => (i * i) % 256))

/** A modulus of the defective generator is a power of 65537 modulo each of these primes; any other is with probability 2⁻²⁸. */
const rocaPrints = smallPrimes
  .filter((prime) => prime > 2n && prime <= 167n)
  .map((prime) => {
    const powers = new Set<bigint>()
    for (let power = 1n; !powers.has(power); power = (power * 65_537n) % prime) powers.add(power)
    return { prime, powers }
  })

const isOfRoca = (modulus: bigint): boolean =>
  rocaPrints.every(({ prime, powers }) => powers.has(modulus % prime))
