import { named, object, type Schema, text } from '@overlay/model/schema'
import type { EnrollRequest } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { peerCertificates } from '../http/connection.js'
import { sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody, type RequestContext } from '../http/exchange.js'
import { queryOf } from '../http/query.js'
import { noRequest } from './enroll.js'
import type { Handlers } from './operations.js'
import { enrolledSchema } from './wire-schemas.js'

const texts = <M extends string>(
  name: string,
  members: Readonly<Record<M, Schema<string>>>,
  required = true,
) => json<Readonly<Partial<Record<M, string>>>>(name, named(name, object({}, members)), required)

const bodies = {
  ott: texts('ottEnrollmentRequest', { token: text, clientCsr: text }),
  erott: texts('erOttEnrollmentRequest', { token: text, clientCsr: text, serverCsr: text }),
  updb: texts('updbCredentials', {
    username: { type: 'string', minLength: 4, maxLength: 100 },
    password: { type: 'string', minLength: 5, maxLength: 100 },
  }),
  ca: texts('caEnrollmentRequest', { name: text }, false),
  extension: json<Readonly<Record<'certCsr' | 'serverCertCsr', string>>>(
    'routerExtendEnrollmentRequest',
    named('routerExtendEnrollmentRequest', object({ certCsr: text, serverCertCsr: text })),
  ),
}

/** differs: one operation for each method, as documented. The token must be of that method. */
export function typedEnroll({ identity, pki, sessions }: Services): Handlers {
  const redeem = (c: RequestContext, request: Partial<EnrollRequest>) =>
    pki.enroll(
      { ...noRequest, ...request, peerCertificates: peerCertificates(c.env.incoming) },
      callContext(c),
    )
  const router = (method: 'erott' | 'trott') =>
    acceptBody(
      bodies.erott,
      async (c, _, { token = '', clientCsr, serverCsr }) => {
        const request = { method, token, csrPem: clientCsr, serverCsrPem: serverCsr }
        const { caPem, chainPem, serverChainPem } = await redeem(c, request)
        return sendData(c, { ca: caPem, cert: chainPem, serverCert: serverChainPem })
      },
      { response: { data: enrolledSchema, envelope: 'enrollmentCertsEnvelope' } },
    )
  return {
    'POST /enroll/ott': acceptBody(
      bodies.ott,
      async (c, _, { token = '', clientCsr }) => {
        const { caPem, chainPem } = await redeem(c, { method: 'ott', token, csrPem: clientCsr })
        return sendData(c, { ca: caPem, cert: chainPem })
      },
      { response: { data: enrolledSchema, envelope: 'enrollmentCertsEnvelope' } },
    ),

    'POST /enroll/ottca': acceptBody(bodies.ott, async (c, _, { token = '' }) => {
      await redeem(c, { method: 'ottca', token })
      return sendEmpty(c)
    }),

    'POST /enroll/erott': router('erott'),
    'POST /enroll/trott': router('trott'), // not published

    'POST /enroll/updb': acceptBody(
      bodies.updb,
      async (c, _, { username = '', password }) => {
        const token = queryOf(c).get('token') ?? ''
        await redeem(c, { method: 'updb', token, username, password })
        return sendEmpty(c)
      },
      {
        query: [
          {
            name: 'token',
            type: 'string',
            format: 'uuid',
            required: true,
            description: 'The one-time token.',
          },
        ],
      },
    ),

    'POST /enroll/ca': acceptBody(bodies.ca, async (c, _, { name = '' }) => {
      const request = { name, peerCertificates: peerCertificates(c.env.incoming) }
      await identity.enrollByCertificate(request, callContext(c))
      return sendEmpty(c)
    }),

    'POST /enroll/extend/router': acceptBody(
      bodies.extension,
      async (c, _, { certCsr, serverCertCsr }) => {
        const { chainPem, serverCertPem } = await sessions.extendRouter(
          {
            csrPem: certCsr,
            serverCsrPem: serverCertCsr,
            peerCertificates: peerCertificates(c.env.incoming),
          },
          callContext(c),
        )
        return sendData(c, { cert: chainPem, serverCert: serverCertPem })
      },
      { response: { data: enrolledSchema, envelope: 'enrollmentCertsEnvelope', fails: [401] } },
    ),
  }
}
