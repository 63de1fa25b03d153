import { Fault } from '@overlay/rpc'
import type { OwnWrites } from '../cache/own-writes.js'
import { empty, send } from '../http/answer.js'
import { raw } from '../http/body.js'
import { type Handlers, takes } from '../http/endpoint.js'
import { contentTypeOf } from '../http/negotiate.js'
import type { Services } from '../http/services.js'

const TEXT = 'text/plain'
const JWT = 'application/jwt'

/** What is done with an authority beside reading and writing it. */
export const cas = ({ pki }: Services, own: OwnWrites): Handlers => ({
  'POST /cas/{id}/verify': takes(
    raw('certificate', [TEXT, 'application/json'], true),
    async (ask, { id }, body) => {
      // wire: JSON is let in, but is no certificate
      if (contentTypeOf(ask.incoming) !== TEXT) throw new Fault('COULD_NOT_PARSE_BODY')
      const { position } = await pki.verifyCa({ id, certificatePem: body.toString() }, ask.context())
      own.note('pki', position)
      return empty(ask)
    },
  ),

  'GET /cas/{id}/jwt': {
    produces: [JWT],
    handle: async (ask, { id }) =>
      send(ask, 200, (await pki.getCaJwt({ kind: 'cas', id }, ask.context())).jwt, JWT),
  },
})
