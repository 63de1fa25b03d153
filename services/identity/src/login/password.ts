import { Fault } from '@overlay/rpc'
import { subjectByUsername } from '../store/subjects.js'
import { about, refusalOf, type Step } from './login.js'
import { tryPassword } from './password-attempt.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

const nameAndPasswordAreGiven: Step = ({ username, password }) => {
  if (username === '' || password === '')
    throw new Fault('COULD_NOT_VALIDATE', 'username and password are both required')
  return undefined
}

const passwordIsRight: Step = about((_subject, { passwordMatches = false }) =>
  passwordMatches ? undefined : 'wrong password',
)

/** The order of checks once the password has been compared: time must not tell which of them fails. */
const afterComparing: readonly Step[] = [
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isPasswordAllowed }) => isPasswordAllowed),
  passwordIsRight,
]

const passwordIsAccepted: Step = (login) =>
  tryPassword(
    login,
    login.username,
    login.password,
    () => subjectByUsername(login.changeLog.db, login.username),
    (subject, passwordMatches) => {
      login.subject = subject
      login.passwordMatches = passwordMatches
      return refusalOf(afterComparing, login)
    },
  )

/** The order of checks. */
export const password: readonly Step[] = [nameAndPasswordAreGiven, passwordIsAccepted]
