import { boundedQueue } from '@overlay/process/async'
import { invalid } from '@overlay/rpc'
import { algorithmOf, signText } from '../domain/sign-jwt.js'
import type { Deps, PkiMethods } from './deps.js'

/** No other text is signed: clients choose it, and the key also signs tokens and handshakes. */
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Signs the nonce with the key of enrollment tokens. Strangers may call it: it has a queue of its own. */
export const answerChallenge = ({ keyring }: Pick<Deps, 'keyring'>): PkiMethods['answerChallenge'] => {
  const queue = boundedQueue({ name: 'challenges', running: 1, waiting: 100 })
  return async ({ keyId, nonce }, { signal }) => {
    const { server, caPem } = await keyring()
    if (keyId !== server.keyId)
      throw invalid('keyId', 'no key that signs enrollment tokens has this id', keyId)
    if (!uuid.test(nonce)) throw invalid('nonce', 'nonce must be a UUID', nonce)
    const signature = await queue(() => signText(server.key, nonce), signal)
    return { algorithm: algorithmOf(server.key), signature, keyId, caPem }
  }
}
