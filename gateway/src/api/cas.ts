import { Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { empty } from '../http/answer.js'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import { contentTypeOf } from '../http/negotiate.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

const TEXT = 'text/plain'
const JWT = 'application/jwt'

/** Special operations on certificate authorities. */
export const cas = ({ pki }: Services): Handlers => ({
  'POST /cas/{id}/verify': takes(
    raw('certificate', [TEXT, 'application/json'], true),
    async (c, { id }, body) => {
      // wire: JSON is an accepted content type, but not a certificate
      if (contentTypeOf(c.env.incoming) !== TEXT) throw new Fault('COULD_NOT_PARSE_BODY')
      await pki.verifyCa({ id, certificatePem: body.toString() }, callContext(c))
      return empty(c)
    },
  ),

  'GET /cas/{id}/jwt': {
    produces: [JWT],
    handle: async (c, { id }) =>
      send(c, 200, (await pki.getCaJwt({ kind: 'cas', id }, callContext(c))).jwt, JWT),
  },
})
