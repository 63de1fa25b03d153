import { clientAddressOf } from '@overlay/platform/tls'
import { sessionJson } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import type { Services } from '../clients/services.js'
import { detail } from '../http/answer.js'
import { callContext } from '../http/calls.js'
import { credentialsOf } from '../http/credentials.js'
import { takes } from '../http/endpoint.js'
import { peerCertificates } from '../http/peer.js'
import { queryOf } from '../http/request-context.js'
import { login } from './bodies.js'
import type { Handlers } from './operations.js'
import { apiSessionSchema } from './wire-schemas.js'

/** Logins, by all methods. Both APIs have them. */
export const authenticate = ({ identity }: Services, sessions: Sessions): Handlers => ({
  'POST /authenticate': takes(
    login,
    async (c, _, { username = '', password = '', configTypes = [], envInfo, sdkInfo }) => {
      const opened = await identity.authenticate(
        {
          method: queryOf(c).get('method') ?? '',
          username,
          password,
          peerCertificates: peerCertificates(c.env.incoming),
          bearerTokens: [...credentialsOf(c.env.incoming).bearers],
          configTypes: [...configTypes],
          envInfo: bytesOf(envInfo),
          sdkInfo: bytesOf(sdkInfo),
          ipAddress: clientAddressOf(c.env.incoming.socket),
        },
        callContext(c),
      )
      const session = sessions.add(opened)
      c.env.holder = session
      c.env.outgoing.setHeader('zt-session', opened.token)
      return detail(c, sessionJson(session))
    },
    {
      query: [
        {
          name: 'method',
          type: 'string',
          required: true,
          oneOf: ['password', 'cert', 'ext-jwt'],
          about: 'How the caller proves who it is.',
        },
      ],
      about: { data: apiSessionSchema, envelope: 'currentApiSessionDetailEnvelope', fails: [401] },
    },
  ),
})

const bytesOf = (value: object | undefined): Buffer =>
  value ? Buffer.from(JSON.stringify(value)) : Buffer.alloc(0)
