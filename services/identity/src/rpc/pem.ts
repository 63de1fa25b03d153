import { X509Certificate } from 'node:crypto'
import { Fault, type FaultCode } from '@overlay/rpc'

const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** The one certificate that the text holds. */
export function onlyCertificate(
  pem: string,
  otherwise: FaultCode = 'COULD_NOT_PARSE_PEM_BLOCK',
): X509Certificate {
  const [first, ...more] = pem.match(block) ?? []
  if (first === undefined || more.length > 0)
    throw new Fault(otherwise, 'exactly one certificate is expected')
  try {
    return new X509Certificate(first)
  } catch (err) {
    throw new Fault(otherwise, 'the block is not a certificate', err)
  }
}
