//! The caches of tools in the user's home, of which each agent has its own layer.

use super::make;
use agentd_sandbox::Caches;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Caches of tools, in the user's home. Each agent has its own writable layer over them.
const CACHES: &[&str] = &[".cargo/registry", ".cargo/git", ".npm"];

/// The same, if they exist. Otherwise tools create them in the agent's own home, which saves a mount.
///
/// Not `.cache` as a whole: other programs keep tokens, mail and what a browser has seen there.
const CACHES_IF_THERE: &[&str] = &[
    ".bun/install/cache",
    ".cache/.wasm-pack",
    ".cache/Cypress",
    ".cache/Homebrew",
    ".cache/R",
    ".cache/bazel",
    ".cache/bazelisk",
    ".cache/black",
    ".cache/bun",
    ".cache/cabal",
    ".cache/ccache",
    ".cache/clangd",
    ".cache/clip",
    ".cache/composer",
    ".cache/conda",
    ".cache/coursier",
    ".cache/deno",
    ".cache/dune",
    ".cache/electron",
    ".cache/electron-builder",
    ".cache/esbuild",
    ".cache/fontconfig",
    ".cache/ghcide",
    ".cache/go-build",
    ".cache/goimports",
    ".cache/golangci-lint",
    ".cache/gopls",
    ".cache/hatch",
    ".cache/helm",
    ".cache/hie-bios",
    ".cache/huggingface/assets",
    ".cache/huggingface/datasets",
    ".cache/huggingface/hub",
    ".cache/huggingface/metrics",
    ".cache/huggingface/modules",
    ".cache/huggingface/xet",
    ".cache/jdtls",
    ".cache/jedi",
    ".cache/luarocks",
    ".cache/mamba",
    ".cache/matplotlib",
    ".cache/mill",
    ".cache/ms-playwright",
    ".cache/ms-playwright-go",
    ".cache/mypy",
    ".cache/nix",
    ".cache/node",
    ".cache/node-gyp",
    ".cache/nvim-treesitter",
    ".cache/org.swift.swiftpm",
    ".cache/pdm",
    ".cache/pip",
    ".cache/pip-tools",
    ".cache/pipenv",
    ".cache/pipx",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/prisma",
    ".cache/prisma-nodejs",
    ".cache/puppeteer",
    ".cache/pylint",
    ".cache/pypoetry",
    ".cache/pytest",
    ".cache/rebar3",
    ".cache/ruff",
    ".cache/scalacli",
    ".cache/sccache",
    ".cache/selenium",
    ".cache/staticcheck",
    ".cache/torch",
    ".cache/tree-sitter",
    ".cache/trunk",
    ".cache/ty",
    ".cache/typescript",
    ".cache/typst",
    ".cache/uv",
    ".cache/vcpkg",
    ".cache/virtualenv",
    ".cache/wasmtime",
    ".cache/whisper",
    ".cache/yarn",
    ".cache/zig",
    ".cache/zls",
    ".gradle/caches",
    ".gradle/wrapper",
    ".local/lib",
    ".local/share/pnpm/store",
    ".m2/repository",
    ".yarn/berry",
    "go/pkg",
];

/// One layer for all caches on the home's file system, and one for each cache on another file system.
pub fn layers(home: &Path, dir: &Path) -> io::Result<Vec<Caches>> {
    let there = CACHES_IF_THERE.iter();
    let there = there.filter(|name| home.join(name).is_dir());
    let names = CACHES.iter().chain(there).map(Path::new);
    let (inside, elsewhere): (Vec<&Path>, Vec<&Path>) =
        names.partition(|name| lies_inside(home, name));
    let mut caches = vec![layer(home, inside, &dir.join("caches"))?];
    for name in elsewhere {
        let own = name.to_string_lossy().replace('/', "-");
        let own = dir.join("caches-elsewhere").join(own);
        caches.push(layer(&home.join(name), vec![Path::new("")], &own)?);
    }
    Ok(caches)
}

fn layer(lower: &Path, names: Vec<&Path>, own: &Path) -> io::Result<Caches> {
    let (upper, work) = (own.join("upper"), own.join("work"));
    for dir in names
        .iter()
        .map(|name| upper.join(name))
        .chain([work.clone()])
    {
        make(&dir)?;
    }
    Ok(Caches {
        lower: lower.to_owned(),
        names: names.into_iter().map(Path::to_owned).collect(),
        upper,
        work,
    })
}

/// Whether a cache is on the home's own file system and is reached without a symlink. True if it does not exist.
fn lies_inside(home: &Path, name: &Path) -> bool {
    let (Ok(home), Ok(real)) = (fs::canonicalize(home), fs::canonicalize(home.join(name))) else {
        return true;
    };
    let device = |path: &Path| fs::metadata(path).map(|of| of.dev()).ok();
    real == home.join(name) && device(&real) == device(&home)
}
