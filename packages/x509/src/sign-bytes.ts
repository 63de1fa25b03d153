import { type SignKeyObjectInput, sign, type VerifyKeyObjectInput, verify } from 'node:crypto'
import { promisify } from 'node:util'

type Sign = (digest: string | null, bytes: Uint8Array, input: SignKeyObjectInput) => Promise<Buffer>
type Verify = (
  digest: string | null,
  bytes: Uint8Array,
  input: VerifyKeyObjectInput,
  signature: Uint8Array,
) => Promise<boolean>

/** Signs bytes on a thread of the pool: an RSA key takes up to several milliseconds. */
export const signBytes: Sign = promisify(sign)

/** Whether a signature is right. Rejects if the algorithm does not fit the key. On a thread, as above. */
export const verifyBytes: Verify = promisify(verify)
