import type { IssuedCertificate } from '@overlay/rpc'
import { type Element, issueLeaf, type Validity } from '@overlay/x509'
import type { Csr } from '../domain/csr.js'
import type { Keyring } from './keyring.js'

/** A client certificate for the key of the request. The names that the request asks for are not used. */
export async function issueClientCertificate(
  { signer, intermediates, caPem }: Keyring,
  csr: Csr,
  validity: Validity,
  altNames: readonly Element[] = [],
): Promise<IssuedCertificate> {
  const certPem = await issueLeaf(signer, { ...csr, altNames, role: 'client', validity })
  return { certPem, chainPem: certPem + intermediates, caPem }
}
