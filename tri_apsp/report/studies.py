"""All studies."""

from tri_apsp.report.exponents import EXPONENTS_STUDY
from tri_apsp.report.fields import FIELD_STUDIES
from tri_apsp.report.sparse import SPARSE_STUDY
from tri_apsp.report.study import Study
from tri_apsp.report.systems import SYSTEM_STUDIES
from tri_apsp.report.variants import VARIANT_STUDIES

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *VARIANT_STUDIES,
        EXPONENTS_STUDY,
        SPARSE_STUDY,
        *FIELD_STUDIES,
        *SYSTEM_STUDIES,
    )
}
"""The studies by their names on the command line."""
