import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { PemConverter, X509CertificateGenerator } from '@peculiar/x509'

// The lowest cost of a response over TLS in this runtime on this machine, with an RSA key if its argument is 'rsa'. Sends
// its port to the parent process.

const algorithm =
  process.argv[2] === 'rsa'
    ? {
        name: 'RSASSA-PKCS1-v1_5',
        hash: 'SHA-256',
        modulusLength: 2048,
        publicExponent: new Uint8Array([1, 0, 1]),
      }
    : { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
const certificate = await X509CertificateGenerator.createSelfSigned(
  { name: 'CN=localhost', keys, signingAlgorithm: algorithm },
  webcrypto,
)
const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
const bodies = new Map<string, Buffer>()

/** @param path `/N`, N being the bytes of the answer */
function bodyOf(path: string): Buffer {
  const body = bodies.get(path) ?? Buffer.alloc(Number(path.slice(1)), 'x')
  bodies.set(path, body)
  return body
}

const server = createServer({
  key,
  cert: certificate.toString('pem'),
  requestCert: true,
  rejectUnauthorized: false,
})
server.on('request', ({ url = '/0' }, response) => {
  const body = bodyOf(url)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
