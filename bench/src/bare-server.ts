import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { PemConverter, X509CertificateGenerator } from '@peculiar/x509'

// The lowest cost of a response over TLS in this runtime on this machine. Sends its port to the parent process.

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
const certificate = await X509CertificateGenerator.createSelfSigned(
  { name: 'CN=localhost', keys, signingAlgorithm: algorithm },
  webcrypto,
)
const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY')
const body = Buffer.from(JSON.stringify({ data: 'x'.repeat(480), meta: {} }))
const headers = { 'content-type': 'application/json', 'content-length': body.length }

const server = createServer({
  key,
  cert: certificate.toString('pem'),
  requestCert: true,
  rejectUnauthorized: false,
})
server.on('request', (_, response) => response.writeHead(200, headers).end(body))
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
