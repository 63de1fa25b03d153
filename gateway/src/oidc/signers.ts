import { externalJwtSigner } from '@overlay/model'
import { Perspective } from '@overlay/rpc'
import { callContext } from '../http/calls.js'
import type { RequestContext } from '../http/exchange.js'
import type { ExternalProvider } from './pages.js'
import type { Provider } from './provider.js'

const MAX_SIGNERS = '50'
const asClient = Perspective.fromPartial({ asClient: true })

/** The enabled signers of external tokens, as every client sees them. */
export async function signersOf({ signers }: Provider, c: RequestContext): Promise<ExternalProvider[]> {
  const query = {
    filter: '',
    sort: 'name',
    limit: MAX_SIGNERS,
    offset: '',
    roleFilter: [],
    roleSemantic: '',
    after: Buffer.alloc(0),
  }
  const request = { kind: externalJwtSigner.kind, query, within: undefined, perspective: asClient }
  const { rows } = await signers.list(request, callContext(c))
  return (JSON.parse(rows.toString()) as Row[]).map(({ name, externalAuthUrl }) => ({
    name,
    url: externalAuthUrl ?? '',
  }))
}

interface Row {
  readonly name: string
  readonly externalAuthUrl?: string | null
}
