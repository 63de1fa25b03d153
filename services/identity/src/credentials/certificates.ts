import { X509Certificate } from 'node:crypto'
import { Fault } from '@overlay/rpc'
import { pemBlocksIn } from '@overlay/x509'

/** The certificates in the text, each as PEM; blocks of other kinds are skipped. */
export const blocksIn = (pem: string): readonly string[] =>
  [...pemBlocksIn(pem)].filter(({ label }) => label === 'CERTIFICATE').map(({ text }) => text)

/** The one certificate that the text holds. */
export function onlyCertificate(pem: string, refused = unparsable): X509Certificate {
  const [first, ...more] = blocksIn(pem)
  if (first === undefined || more.length > 0) throw refused('exactly one certificate is expected')
  try {
    return new X509Certificate(first)
  } catch (err) {
    throw refused('the block is not a certificate', err)
  }
}

const unparsable = (reason: string, cause?: unknown): Fault =>
  new Fault('COULD_NOT_PARSE_PEM_BLOCK', reason, cause)
