import { Fault } from '@overlay/rpc'
import { findCa } from '../store/cas.js'
import type { Deps, PkiMethods } from './deps.js'

/** The token for clients that have a certificate of the authority. */
export const getCaJwt =
  ({ changeLog, issuer }: Deps): PkiMethods['getCaJwt'] =>
  async ({ id }) => {
    if (!(await findCa(changeLog.db, id))) throw new Fault('NOT_FOUND') // wire: without a cause
    return { jwt: await issuer.caJwt(id) }
  }
