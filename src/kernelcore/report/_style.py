"""The stylesheet of the page; it has no address of anything outside."""

STYLESHEET = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d1f21; --faint: #555b61; --line: #c9ced3;
  --soft: #f4f5f7; --link: #0b5394; --good: #1a6b3c; --bad: #a8200d; --badsoft: #fbe9e7; /*light*/ }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #16181b; --ink: #e4e6e8;
  --faint: #a9b0b7; --line: #3d444b; --soft: #1f2327; --link: #8ec5ff; --good: #6fce96;
  --bad: #ff9d8c; --badsoft: #3a1d18; /*dark*/ } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 62rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 0 0 .4rem; }
main > section, footer { border-top: 2px solid var(--ink); padding-top: .9rem; margin-top: 2.4rem; }
#verdicts { border: 0; margin-top: .6rem; padding-top: 0; }
#verdicts h2 { font-size: 1.1rem; }
p { margin: .6rem 0; max-width: 48rem; }
a { color: var(--link); } a:focus-visible, summary:focus-visible, [tabindex]:focus-visible {
  outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; } .skip:focus { position: static; }
.here { text-decoration: none; font-weight: 400; color: var(--faint); }
.claim { font-size: 1.05rem; border-left: 4px solid var(--link); padding-left: .8rem; }
.up, .paper, figcaption, dl { font-size: .88rem; color: var(--faint); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem .9rem; padding: .7rem .9rem;
  margin: .8rem 0 0; background: var(--soft); font-size: .92rem; }
figure { margin: 1.4rem 0; } figcaption { margin-top: .4rem; max-width: 48rem; }
.wide { overflow-x: auto; } .tall { max-height: 75vh; overflow-y: auto; position: relative; }
.tall thead th { position: sticky; top: 0; background: var(--paper); }
svg { display: block; width: 100%; height: auto; color: var(--ink); }
svg text { fill: currentColor; font-family: "DejaVu Sans", Verdana, Roboto, "Helvetica Neue", Arial,
  sans-serif; }
svg path, svg use { stroke-linejoin: round; }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.4; }
th, td { padding: .3rem .6rem; text-align: right; vertical-align: top; font-weight: 400;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
thead th { font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom; }
.name, .verdicts tbody th, .verdicts .mark, .verdicts th:nth-child(-n+2) { text-align: left; }
.wide td, .wide th { white-space: nowrap; } .wide thead th { white-space: normal; }
.verdicts { width: 100%; } .verdicts td { white-space: nowrap; }
.verdicts .mark { font-weight: 600; }
.holds .mark, .claims .holds b, .good { color: var(--good); }
.fails .mark, .crashed .mark, .claims .fails b, .bad, .failed { color: var(--bad); }
tr.fails, tr.crashed, .failed { background: var(--badsoft); }
.counts { font-weight: 600; } .failed, .left { padding: .5rem .8rem; }
.claims { padding-left: 1.1rem; max-width: 48rem; font-size: .94rem; }
details { margin: 1rem 0; } summary { cursor: pointer; font-size: .92rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .7rem 0; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
code { font-size: .92em; }
@media screen and (max-width: 44rem) {
  body { padding: 1rem .8rem 3rem; } .wide svg { width: 40rem; }
  .verdicts td { white-space: normal; }
  .verdicts thead { position: absolute; left: -99rem; }
  .verdicts, .verdicts tbody, .verdicts tr, .verdicts td, .verdicts th { display: block;
    text-align: left; border: 0; padding: .1rem 0; }
  .verdicts tr { border-bottom: 1px solid var(--line); padding: .5rem .4rem; }
  .verdicts td:empty { display: none; }
  .verdicts td[data-of]::before { content: attr(data-of) ": "; color: var(--faint); }
}
@media print {
  body { max-width: none; font-size: 10pt; padding: 0; } nav, .skip, .up, .here { display: none; }
  figure, tr, .claims li { break-inside: avoid; } h2 { break-after: avoid; }
  main > section { break-before: page; } #verdicts { break-before: auto; }
  .wide { overflow: visible; } .tall { max-height: none; overflow: visible; }
  .wide td, .wide th { white-space: normal; }
}
"""
