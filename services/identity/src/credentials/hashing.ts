import { randomUUID } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { fairQueue, type Share } from '@overlay/platform/async'

export interface HashSettings {
  readonly memoryKib: number
  readonly passes: number
  readonly lanes: number
  readonly running: number
  readonly waiting: number
}

/** For whom a hash is computed. */
export interface Turn extends Share {
  readonly signal?: AbortSignal
}

/** By the parameters of the stored hash. Without one it takes as long, and the answer is no. */
export type Compare = (stored: string | null, password: string) => Promise<boolean>

export interface Hashing {
  /** argon2id in the form of the PHC: algorithm, parameters, salt and hash in one text. */
  hash(password: string, turn: Turn): Promise<string>
  /** Work that compares one password, when its turn comes; it learns whether it had to wait. */
  inTurn<T>(turn: Turn, work: (compare: Compare, hasWaited: boolean) => Promise<T>): Promise<T>
}

/** Hashing takes milliseconds of a core and much memory: what does not fit into the queue is refused before it costs. */
export function openHashing({ memoryKib, passes, lanes, running, waiting }: HashSettings): Hashing {
  const options = { memoryCost: memoryKib, timeCost: passes, parallelism: lanes, outputLen: 32 }
  const queue = fairQueue({ name: 'password hashes', running, waiting })
  const nobody = hash(randomUUID(), options)
  nobody.catch(() => undefined) // told to whoever waits for it

  const compare: Compare = async (stored, password) => verify(stored ?? (await nobody), password)
  return {
    hash: (password, { signal, ...share }) => queue(share, () => hash(password, options), signal),
    inTurn: ({ signal, ...share }, work) => queue(share, (hasWaited) => work(compare, hasWaited), signal),
  }
}
