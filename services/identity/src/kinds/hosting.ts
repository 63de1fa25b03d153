import { service } from '@overlay/model'
import { notFound } from '@overlay/rpc'

export interface Hosting {
  readonly serviceHostingCosts: Readonly<Record<string, number>>
  readonly serviceHostingPrecedences: Readonly<Record<string, string>>
}

const precedences = new Set(['default', 'required', 'failed'])

/** What the identity costs as a host, by service. */
export function hostingOf(body: Readonly<Record<string, unknown>>): Hosting {
  const labels = (body.serviceHostingPrecedences ?? {}) as Hosting['serviceHostingPrecedences']
  return {
    serviceHostingCosts: (body.serviceHostingCosts ?? {}) as Hosting['serviceHostingCosts'],
    serviceHostingPrecedences: Object.fromEntries(
      // wire: an unknown label means the default
      Object.entries(labels).map(([id, label]) => [id, precedences.has(label) ? label : 'default']),
    ),
  }
}

/** The services of these costs and precedences. */
export const servicesIn = (hosting: Partial<Record<keyof Hosting, object | null>>): string[] => [
  ...new Set(hostingMembers.flatMap((member) => Object.keys(hosting[member] ?? {}))),
]

export const hostingMembers = ['serviceHostingCosts', 'serviceHostingPrecedences'] as const

/** Refuses services that do not exist. */
export function refuseUnknown(services: readonly string[], exists: (id: string) => boolean): void {
  const unknown = services.find((id) => !exists(id))
  if (unknown !== undefined) throw notFound(service.called, unknown)
}
