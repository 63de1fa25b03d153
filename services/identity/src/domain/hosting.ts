/** Costs and precedences of an identity as a host, by service. */
export interface Hosting {
  readonly serviceHostingCosts: Readonly<Record<string, number>>
  readonly serviceHostingPrecedences: Readonly<Record<string, string>>
}

export const hostingMembers = ['serviceHostingCosts', 'serviceHostingPrecedences'] as const

const precedences = new Set(['default', 'required', 'failed'])

/** The hosting members of a body. */
export function hostingOf(body: Readonly<Record<string, unknown>>): Hosting {
  const labels = (body.serviceHostingPrecedences ?? {}) as Hosting['serviceHostingPrecedences']
  return {
    serviceHostingCosts: (body.serviceHostingCosts ?? {}) as Hosting['serviceHostingCosts'],
    serviceHostingPrecedences: Object.fromEntries(
      // wire: an unknown precedence is stored as 'default', not refused
      Object.entries(labels).map(([id, label]) => [id, precedences.has(label) ? label : 'default']),
    ),
  }
}

/** The ids of the services that these costs and precedences name. */
export const servicesIn = (hosting: Partial<Record<keyof Hosting, object | null>>): string[] => [
  ...new Set(hostingMembers.flatMap((member) => Object.keys(hosting[member] ?? {}))),
]
