import { randomUUID } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { fairQueue, type Share } from '@overlay/process/async'
import { type Context, sourceOf } from '@overlay/rpc'
import { isWeaker, type SoundPassword } from '../domain/passwords.js'

export interface HashSettings {
  readonly memoryKib: number
  readonly passes: number
  readonly lanes: number
  readonly running: number
  readonly waiting: number
}

/** Of commands, which hash one password. */
export const defaultHashing: HashSettings = { memoryKib: 19_456, passes: 2, lanes: 1, running: 1, waiting: 1 }

/** For whom a hash is computed: the queue is fair between sources, and between names of one source. */
export interface Turn extends Share {
  readonly signal?: AbortSignal
}

/** How hashes for this request queue. */
export const turnOf = ({ caller, sourceAddress, signal }: Context, name = caller.identityId): Turn => ({
  source: sourceOf(sourceAddress),
  name,
  signal,
})

/** What a turn is for. */
export interface Comparing {
  /** Compares with a stored hash by its parameters. Without one it takes the same time and returns false. */
  compare(stored: string | null, password: string): Promise<boolean>
  /**
   * Another hash of a password that has matched, if the parameters of new hashes are stronger than those of the stored
   * one.
   */
  strengthen(stored: string, password: string): Promise<string | undefined>
}

export interface Hashing {
  /** argon2id in PHC string format: algorithm, parameters, salt and hash. */
  hash(password: SoundPassword, turn: Turn): Promise<string>
  /** Runs work that compares one password when its turn comes. `hasWaited`: not at once. */
  inTurn<T>(turn: Turn, work: (comparing: Comparing, hasWaited: boolean) => Promise<T>): Promise<T>
}

/** Hashing takes milliseconds of a core and much memory. Beyond the queue it is refused before it costs anything. */
export function openHashing({ memoryKib, passes, lanes, running, waiting }: HashSettings): Hashing {
  const options = { memoryCost: memoryKib, timeCost: passes, parallelism: lanes, outputLen: 32 }
  const queue = fairQueue({ name: 'password hashes', running, waiting })
  const decoy = hash(randomUUID(), options)
  decoy.catch(() => undefined) // thrown by each comparison that awaits it

  const comparing: Comparing = {
    compare: async (stored, password) => verify(stored ?? (await decoy), password),
    strengthen: async (stored, password) =>
      isWeaker(stored, { memoryKib, passes }) ? hash(password, options) : undefined,
  }
  return {
    hash: (password, { signal, ...share }) => queue(share, () => hash(password, options), signal),
    inTurn: ({ signal, ...share }, work) => queue(share, (hasWaited) => work(comparing, hasWaited), signal),
  }
}
