import type { Viewer } from '@overlay/platform'
import { type Context, notFound } from '@overlay/rpc'

export interface Hosting {
  readonly serviceHostingCosts: Readonly<Record<string, number>>
  readonly serviceHostingPrecedences: Readonly<Record<string, string>>
}

const precedences = new Set(['default', 'required', 'failed'])

/** What the identity costs as a host, by service. Services that do not exist are refused. */
export async function hostingOf(
  services: Viewer,
  body: Readonly<Record<string, unknown>>,
  context: Context,
): Promise<Hosting> {
  const costs = (body.serviceHostingCosts ?? {}) as Hosting['serviceHostingCosts']
  const labels = (body.serviceHostingPrecedences ?? {}) as Hosting['serviceHostingPrecedences']
  const ids = [...new Set([...Object.keys(costs), ...Object.keys(labels)])]
  if (ids.length > 0) {
    const { json } = await services.view({ kind: 'services', ids }, context)
    ids.forEach((id, i) => {
      if (!json[i]?.length) throw notFound('service', id)
    })
  }
  return {
    serviceHostingCosts: costs,
    serviceHostingPrecedences: Object.fromEntries(
      // wire: a label that nobody knows means the default
      Object.entries(labels).map(([id, label]) => [id, precedences.has(label) ? label : 'default']),
    ),
  }
}
