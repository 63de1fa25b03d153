import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls'
import { type ChannelCredentials, credentials, type VerifyOptions } from '@grpc/grpc-js'
import { type PeerName, peerNameIn } from './peer-name.js'
import type { PeerTls } from './peer-tls.js'

/** How connections to the replicas of one service are made: each with the current certificate and authorities. */
export interface PeerConnection extends Disposable {
  readonly service: PeerName
  readonly credentials: ChannelCredentials
  options(): ConnectionOptions
}

/** @param service that the replicas must prove to be */
export function peerConnection(service: PeerName, tls: PeerTls): PeerConnection {
  let { context } = createSecureContext(tls.contextOptions())
  const stopRenewing = tls.onChange(() => {
    context = createSecureContext(tls.contextOptions()).context
  })
  const secureContext: SecureContext = {
    get context() {
      return context
    },
  }
  const verify: VerifyOptions = {
    checkServerIdentity(_host, { subjectaltname }) {
      if (peerNameIn(subjectaltname) === service) return undefined
      return new Error(`the server has the certificate of ${subjectaltname}, not of ${service}`)
    },
  }
  return {
    service,
    credentials: credentials.createFromSecureContext(secureContext, verify),
    options: () => ({ ...verify, secureContext, servername: service }),
    [Symbol.dispose]: stopRenewing,
  }
}
