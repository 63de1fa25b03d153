import { Fault } from '@overlay/rpc'
import { about, refusalOf, type Step } from './login.js'
import { tryPassword } from './password-attempt.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

const nameAndPasswordArePresent: Step = ({ username, password }) => {
  if (username === '' || password === '')
    throw new Fault('COULD_NOT_VALIDATE', 'username and password are both required')
  return undefined
}

const passwordIsCorrect: Step = about((_subject, { passwordMatches = false }) =>
  passwordMatches ? undefined : 'wrong password',
)

/** The order of checks after the password is compared: time must not reveal which of them fails. */
const afterComparing: readonly Step[] = [
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isPasswordAllowed }) => isPasswordAllowed),
  passwordIsCorrect,
]

const passwordIsAccepted: Step = (login) =>
  tryPassword(login, {
    username: login.username,
    password: login.password,
    find: login.lookUpPassword,
    judge(subject, passwordMatches) {
      login.subject = subject
      login.passwordMatches = passwordMatches
      return refusalOf(afterComparing, login)
    },
  })

/** The order of checks. */
export const password: readonly Step[] = [nameAndPasswordArePresent, passwordIsAccepted]
