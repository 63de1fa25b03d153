interface Cost {
  readonly memoryKib: number
  readonly passes: number
}

const shortestSalt = 16 // bytes
const phc = /^\$(argon2\w+)\$v=19\$m=(\d+),t=(\d+),p=\d+\$([^$]+)\$[^$]+$/

/**
 * Whether a hash in PHC string format is weaker than new ones of this cost: in one respect, and stronger in none. Lanes
 * do not count: they divide the same work.
 */
export function isWeaker(stored: string, { memoryKib, passes }: Cost): boolean {
  const [, algorithm, memory, time, salt = ''] = phc.exec(stored) ?? []
  const [storedKib, storedPasses] = [Number(memory), Number(time)]
  if (!(storedKib <= memoryKib && storedPasses <= passes)) return false
  if (storedKib < memoryKib || storedPasses < passes || algorithm !== 'argon2id') return true
  return Buffer.from(salt, 'base64').length < shortestSalt
}
