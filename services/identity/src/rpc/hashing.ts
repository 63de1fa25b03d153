import { randomUUID } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { boundedQueue } from '@overlay/platform'

export interface HashSettings {
  readonly memoryKib: number
  readonly passes: number
  readonly lanes: number
  readonly running: number
  readonly waiting: number
}

export interface Hashing {
  /** argon2id in the form of the PHC: algorithm, parameters, salt and hash in one text. */
  hash(password: string): Promise<string>
  /** By the parameters of the stored hash. Without one it takes as long, and the answer is no. */
  matches(stored: string | null, password: string): Promise<boolean>
}

/** Hashing takes milliseconds of a core and much memory: what does not fit into the queue is refused before it costs. */
export function openHashing({ memoryKib, passes, lanes, running, waiting }: HashSettings): Hashing {
  const options = { memoryCost: memoryKib, timeCost: passes, parallelism: lanes, outputLen: 32 }
  const queue = boundedQueue({ name: 'password hashes', running, waiting })
  const nobody = hash(randomUUID(), options)
  nobody.catch(() => undefined) // told to whoever waits for it
  return {
    hash: (password) => queue(() => hash(password, options)),
    matches: (stored, password) => queue(async () => verify(stored ?? (await nobody), password)),
  }
}
