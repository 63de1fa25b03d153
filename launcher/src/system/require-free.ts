import { splitAddress } from '@overlay/process/settings'
import { collide, listenError } from './ports.js'

/** An address at which the product listens. */
export interface Listen {
  readonly text: string
  /** Those that choose it. */
  readonly settings: readonly string[]
}

/** Throws unless the product can listen at all of them. */
export async function requireFree(listens: readonly Listen[]): Promise<void> {
  for (const [at, { text, settings }] of listens.entries()) {
    const address = splitAddress(text)
    const other = listens.slice(0, at).find(({ text }) => collide(splitAddress(text), address))
    if (other)
      throw new Error(
        `${other.settings[0]} and ${settings[0]} have the same port, ${address.port}: set another one`,
      )
    const failure = await listenError(address)
    if (failure) throw new Error(`cannot listen at ${text}: ${failure.message}; set ${settings.join(' or ')}`)
  }
}
