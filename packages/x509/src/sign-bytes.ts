import { type KeyObject, type SignKeyObjectInput, sign, type VerifyKeyObjectInput, verify } from 'node:crypto'
import { promisify } from 'node:util'

const signOnThread = promisify(sign)
const verifyOnThread = promisify(verify)

/** With P-256, waking a thread of the pool takes as long as the work. Other keys take up to several milliseconds. */
const isQuick = ({ key }: { readonly key: KeyObject }): boolean =>
  key.asymmetricKeyDetails?.namedCurve === 'prime256v1'

/** Signs bytes. Keys that take long sign on a thread of the pool, not on the event loop. */
export const signBytes = async (
  digest: string | null,
  bytes: Uint8Array,
  input: SignKeyObjectInput,
): Promise<Buffer> => (isQuick(input) ? sign(digest, bytes, input) : signOnThread(digest, bytes, input))

/** Whether a signature is right. Rejects if the algorithm does not fit the key. On a thread, as above. */
export const verifyBytes = async (
  digest: string | null,
  bytes: Uint8Array,
  input: VerifyKeyObjectInput,
  signature: Uint8Array,
): Promise<boolean> =>
  isQuick(input) ? verify(digest, bytes, input, signature) : verifyOnThread(digest, bytes, input, signature)
