import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { PemConverter, Pkcs10CertificateRequestGenerator } from '@peculiar/x509'

export interface KeyAndRequest {
  readonly key: string
  readonly csr: string
}

/** A new P-256 key and its certificate request for an enrollment, both as PEM. */
export async function keyAndRequest(commonName = 'bench'): Promise<KeyAndRequest> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const csr = await Pkcs10CertificateRequestGenerator.create(
    { name: `CN=${commonName}`, keys, signingAlgorithm: algorithm },
    webcrypto,
  )
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return { csr: csr.toString('pem'), key: PemConverter.encode(key, 'PRIVATE KEY') }
}
