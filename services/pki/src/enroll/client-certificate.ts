import { Fault, type IssuedCertificate } from '@overlay/rpc'
import { type Element, issueLeaf, type Validity } from '@overlay/x509'
import { type Csr, CsrError, readCsr } from '../domain/csr.js'
import type { Keyring } from '../keys/keyring.js'

/** Parses and verifies a certificate request. `detail` replaces the exact reason of a refusal. */
export async function parseCsr(pem: string, detail?: Fault['detail']): Promise<Csr> {
  try {
    return await readCsr(pem)
  } catch (err) {
    if (!(err instanceof CsrError)) throw err
    throw new Fault('COULD_NOT_PROCESS_CSR', detail ?? err.message, err)
  }
}

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
