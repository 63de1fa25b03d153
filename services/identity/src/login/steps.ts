import { isDisabled } from '../domain/disabled.js'
import type { Subject } from '../store/subjects.js'
import { about, type Step } from './login.js'

export const subjectIsKnown: Step = about(() => undefined)

export const identityIsEnabled: Step = about((subject, { now }) =>
  isDisabled(subject, now) ? 'disabled' : undefined,
)

export const policyAllows = (allows: (subject: Subject) => boolean): Step =>
  about((subject) => (allows(subject) ? undefined : 'method not allowed'))
