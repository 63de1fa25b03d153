import { constants } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Logger } from 'pino'
import { type PeerName, peerNameIn, peerNames } from './peer-name.js'
import { openTlsDirectory, type TlsDirectoryOptions } from './tls-directory.js'
import type { TlsMaterial } from './tls-material.js'

/** The certificate by which a process is a peer of the others, and the authorities of theirs. */
export interface PeerTls extends Disposable {
  /** The service that the certificate names. */
  readonly name: PeerName
  /** Of the last valid set. */
  contextOptions(): SecureContextOptions
  /** Returns a function that removes the listener. */
  onChange(listener: () => void): () => void
}

export interface PeerTlsOptions extends Omit<TlsDirectoryOptions, 'check'> {
  /** The service that the certificate must name. */
  readonly name?: PeerName
}

/**
 * Reads `tls.crt`, `tls.key` and `ca.crt` of a directory, and again when they change. Fails if they are unusable; later
 * an unusable set is logged, and the last valid one stays in use.
 */
export async function openPeerTls(
  directory: string,
  log: Logger,
  { name: expected, ...options }: PeerTlsOptions = {},
): Promise<PeerTls> {
  let name = expected
  const tls = await openTlsDirectory(directory, log, {
    ...options,
    check({ leaf: { subjectAltName } }, directory) {
      const named = peerNameIn(subjectAltName)
      if (named === undefined)
        throw new Error(
          `${directory}/tls.crt must have exactly one of the DNS names ${peerNames.join(', ')}, but has ${subjectAltName ?? 'no names'}: issue it for the service of this process`,
        )
      name ??= named
      if (named !== name)
        throw new Error(
          `${directory}/tls.crt is the certificate of ${named}, and this process is ${name}: issue it with the DNS name ${name}`,
        )
    },
  })
  if (name === undefined) throw new Error('unchecked certificate')
  return {
    name,
    contextOptions: () => contextOptionsOf(tls.current()),
    onChange: tls.onChange,
    [Symbol.dispose]: tls[Symbol.dispose],
  }
}

/** For both sides of a connection. */
export const contextOptionsOf = ({
  certificates,
  key,
  authorities,
}: Omit<TlsMaterial, 'leaf'>): SecureContextOptions => ({
  cert: certificates,
  key,
  ca: authorities,
  minVersion: 'TLSv1.3',
  // 128 bits first: it costs the least
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256',
  secureOptions: constants.SSL_OP_NO_TICKET, // every connection proves its certificate
})
