/** The version of the product, and the commit from which it was built. */
export interface Build {
  readonly version: string
  /** 12 digits of the commit, then `-dirty` if files were modified; `tree-…` if the commit is not known. */
  readonly revision: string
}

/** Defined by scripts/build.sh, absent in tests that run from the sources. */
declare const OVERLAY_BUILD: Build

export const build: Build =
  typeof OVERLAY_BUILD === 'undefined' ? { version: '0.0.0', revision: 'sources' } : OVERLAY_BUILD

export const buildText = `overlay ${build.version} (${build.revision})`
