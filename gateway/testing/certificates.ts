import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

type Crypto = Parameters<typeof x509.cryptoProvider.set>[0]

const crypto = webcrypto as unknown as Crypto & typeof webcrypto
x509.cryptoProvider.set(crypto)

const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
export const rsaOf = (modulusLength: number) => ({
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
})

export interface TestCertificate {
  readonly keyPem: string
  readonly pem: string
  readonly certificate: x509.X509Certificate
  readonly keys: webcrypto.CryptoKeyPair
  readonly algorithm: typeof p256 | ReturnType<typeof rsaOf>
}

let serial = 0

/** A certificate for tests, signed by `issuer` or by itself. */
export async function makeCertificate(
  name: string,
  issuer?: TestCertificate,
  isCa = false,
  algorithm: TestCertificate['algorithm'] = p256,
): Promise<TestCertificate> {
  const keys = (await crypto.subtle.generateKey(algorithm, true, [
    'sign',
    'verify',
  ])) as webcrypto.CryptoKeyPair
  serial += 1
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial.toString(16).padStart(4, '0'),
    subject: `CN=${name}`,
    issuer: issuer ? issuer.certificate.subject : `CN=${name}`,
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: (issuer ?? { algorithm }).algorithm,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 86_400_000),
    extensions: [
      new x509.BasicConstraintsExtension(isCa, undefined, true),
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: 'localhost' },
        { type: 'ip', value: '127.0.0.1' },
      ]),
    ],
  })
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  const keyPem = `-----BEGIN PRIVATE KEY-----\n${pkcs8.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
  return { keyPem, pem: `${certificate.toString('pem')}\n`, certificate, keys, algorithm }
}
